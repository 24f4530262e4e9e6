"""What a target's program is made of: how much work it is, and whether it solves equations.

A clock would tell the work better, but the same key must give the same sampler on a busy machine as on an
idle one. Targets that solve equations are looked at one point at a time: on a CPU jaxlib hands each batch of
small matrices to the threads of its pool and waits for them, in a thread of that same pool. Two batches at
once, on a machine with two cores, wait for each other for ever (seen with jaxlib 0.10.2, in the gradient of a
Cholesky factor). Point by point there are no batches; and for matrices of some tens of rows it takes half the
time.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.parameters.record import Parameters

DENSE, CURVE = 0.1, 5.0
"""What a multiply-add inside a matrix product costs, and a transcendental function, next to an operation on
an element of an array."""

TRANSCENDENTAL = ("exp", "exp2", "log", "log1p", "expm1", "tanh", "logistic", "sin", "cos", "pow", "erf")

SOLVERS = (
    *("cholesky", "triangular_solve", "lu", "lu_pivots_to_permutation", "qr", "geqrf", "householder_product"),
    *("eig", "eigh", "svd", "schur", "hessenberg", "tridiagonal", "tridiagonal_solve"),
)

TURNS = 10  # turns that are assumed of a loop whose number of turns is not known beforehand


def operations(target: Target) -> float:
    """Return about how many operations the log density and its gradient at one point take."""
    program = _program(target, jax.value_and_grad(target.log_density))
    return math.fsum(turns * _one(equation) for equation, turns in equations(program))


def _program(target: Target, function: Callable[..., Any]) -> Any:
    """Return the jaxpr of a function of one point."""
    return jax.make_jaxpr(function)(jax.ShapeDtypeStruct((target.dim,), jnp.zeros(()).dtype)).jaxpr


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


class OneByOne(Target):
    """A target whose log density, however it is vectorised, is computed point after point.

    It can be differentiated once, in reverse mode; for its curvature there is `hessian`. That is by
    differences where the target itself cannot be differentiated twice.
    """

    target: Target
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    once: bool = eqx.field(static=True)

    def __init__(self, target: Target, *, once: bool = False):
        self.target, self.dim, self.name, self.once = target, target.dim, target.name, once

    @property
    def parameters(self) -> Parameters | None:
        """Those of the target."""
        return self.target.parameters

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log density at one point."""
        # Such that a `vmap` of it is a loop.
        in_turn = jax.custom_batching.sequential_vmap
        value = jax.custom_vjp(in_turn(self.target.log_density))
        value.defvjp(in_turn(jax.value_and_grad(self.target.log_density)), lambda slope, c: (c * slope,))
        return value(x)

    def hessian(self, x: Float[Array, " dim"]) -> Float[Array, "dim dim"]:
        """Return the second derivatives at one point, row after row."""
        slope = jax.grad(self.target.log_density)
        if self.once:
            step = jnp.finfo(x.dtype).eps ** (1 / 3) * (jnp.abs(x).mean() + 1.0)
            change = lambda e: (slope(x + step * e) - slope(x - step * e)) / (2 * step)  # noqa: E731
            found = jax.lax.map(change, jnp.eye(self.dim))
            return 0.5 * (found + found.T)
        return jax.lax.map(lambda e: jax.jvp(slope, (x,), (e,))[1], jnp.eye(self.dim))


def one_by_one(target: Target) -> Target:
    """Return the target as it is, or looked at one point at a time where that is called for."""
    if isinstance(target, OneByOne):
        return target
    names = _primitives(_program(target, target.log_density))
    solves = jax.default_backend() == "cpu" and not names.isdisjoint(SOLVERS)
    once = not names.isdisjoint(("custom_vjp_call", "pure_callback"))
    return OneByOne(target, once=once) if solves or once else target


def _primitives(program: Any) -> set[str]:
    """Return the names of all equations, those that hold others included."""
    found = {equation.primitive.name for equation in program.eqns}
    return found.union(
        *(_primitives(one) for each in program.eqns for one in _programs(each.params.values()))
    )
