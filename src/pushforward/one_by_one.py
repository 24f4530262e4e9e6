"""Targets that solve equations inside, looked at one point at a time.

On a CPU jaxlib hands each batch of small matrices to the threads of its pool and waits for them, in a thread
of that same pool. Two batches at once, on a machine with two cores, wait for each other for ever (seen with
jaxlib 0.10.2, in the gradient of a Cholesky factor). Point by point there are no batches; and for matrices of
some tens of rows it takes half the time.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.effort import equations
from pushforward.parameters.record import Parameters

SOLVERS = (
    *("cholesky", "triangular_solve", "lu", "lu_pivots_to_permutation", "qr", "geqrf", "householder_product"),
    *("eig", "eigh", "svd", "schur", "hessenberg", "tridiagonal", "tridiagonal_solve"),
)


class OneByOne(Target):
    """A target whose log density, however it is vectorised, is computed point after point.

    It can be differentiated once, in reverse mode; for its curvature there is `hessian`.
    """

    target: Target
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(self, target: Target):
        self.target, self.dim, self.name = target, target.dim, target.name

    @property
    def parameters(self) -> Parameters | None:
        """Those of the target."""
        return self.target.parameters

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log density at one point."""
        value = jax.custom_vjp(_in_turn(self.target.log_density))
        value.defvjp(_in_turn(jax.value_and_grad(self.target.log_density)), lambda slope, c: (c * slope,))
        return value(x)

    def hessian(self, x: Float[Array, " dim"]) -> Float[Array, "dim dim"]:
        """Return the second derivatives at one point, row after row."""
        slope = jax.grad(self.target.log_density)
        return jax.lax.map(lambda e: jax.jvp(slope, (x,), (e,))[1], jnp.eye(self.dim))


def one_by_one(target: Target) -> Target:
    """Return the target as it is, or looked at one point at a time where that is called for."""
    if isinstance(target, OneByOne) or jax.default_backend() != "cpu":
        return target
    point = jax.ShapeDtypeStruct((target.dim,), jnp.zeros(()).dtype)
    program = jax.make_jaxpr(target.log_density)(point).jaxpr
    solves = any(equation.primitive.name in SOLVERS for equation, _ in equations(program))
    return OneByOne(target) if solves else target


def _in_turn(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function, such that a `vmap` of it is a loop."""
    return jax.custom_batching.sequential_vmap(function)
