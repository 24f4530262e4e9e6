"""How much work a call of a target is, counted in its program: the same count on every machine.

A clock would say it better, but the same key must give the same sampler on a busy machine as on an idle one.
"""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from pushforward.base import Target

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


TURNS = 10
"""Turns that are assumed of a loop whose number of turns is not known beforehand."""


def equations(program: Any, turns: int = 1) -> Iterator[tuple[Any, int]]:
    """Yield each innermost equation of a jaxpr, and how often it is computed."""
    for equation in program.eqns:
        inside = list(_programs(equation.params.values()))
        if not inside:
            yield equation, turns
        name = equation.primitive.name
        often = equation.params["length"] if name == "scan" else TURNS if name == "while" else 1
        for one in inside:
            yield from equations(one, turns * often)


def _programs(values: Any) -> Iterator[Any]:
    """Yield the programs among an equation's parameters."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _programs(value)
        elif hasattr(value, "eqns"):
            yield value
        elif hasattr(value, "jaxpr") and hasattr(value.jaxpr, "eqns"):
            yield value.jaxpr
