"""How much work a call of a target is, counted in its program: the same count on every machine.

A clock would say it better, but the same key must give the same sampler on a busy machine as on an idle one.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from pushforward.base import Target
from pushforward.programs import equations

DENSE = 0.1
"""What a multiply-add inside a matrix product costs, next to an operation on an element of an array."""

TRANSCENDENTAL = ("exp", "exp2", "log", "log1p", "expm1", "tanh", "logistic", "sin", "cos", "pow", "erf")
CURVE = 5.0


def operations(target: Target) -> float:
    """Return about how many operations the log density and its gradient at one point take."""
    point = jax.ShapeDtypeStruct((target.dim,), jnp.zeros(()).dtype)
    program = jax.make_jaxpr(jax.value_and_grad(target.log_density))(point).jaxpr
    return math.fsum(turns * _one(equation) for equation, turns in equations(program))


def _one(equation: Any) -> float:
    name, params = equation.primitive.name, equation.params
    given = [_shape(value) for value in equation.invars]
    made = sum(math.prod(_shape(value)) for value in equation.outvars)
    if name == "dot_general":
        contracted, _ = params["dimension_numbers"]
        return DENSE * made * math.prod(given[0][axis] for axis in contracted[0])
    if name in ("cholesky", "triangular_solve"):
        return DENSE * made * given[0][-1]
    if name in ("eigh", "eig", "svd", "qr", "lu", "geqrf", "householder_product"):
        return float(made * given[0][-1])
    return made * (CURVE if name in TRANSCENDENTAL else 1.0)


def _shape(value: Any) -> tuple[int, ...]:
    return getattr(value.aval, "shape", ())
