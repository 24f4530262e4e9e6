"""The divergence of a vector field, exactly and by random projections."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Score


def value_and_divergence(
    field: Score, x: Float[Array, " dim"]
) -> tuple[Float[Array, " dim"], Float[Array, ""]]:
    """Return `field(x)` and `sum_i d field_i / d x_i`, by one forward-mode tangent a coordinate."""
    value, push = jax.linearize(field, x)
    return value, jnp.trace(jax.vmap(push)(jnp.eye(x.size, dtype=x.dtype)))


def stein_value(score: Score, critic: Score, x: Float[Array, " dim"], weight: float) -> Float[Array, ""]:
    """Return `s(x) . f(x) + div f(x) - weight |f(x)|^2` of a critic `f`."""
    value, divergence = value_and_divergence(critic, x)
    return score(x) @ value + divergence - weight * value @ value


def value_and_quadratic_form(
    field: Score, x: Float[Array, " dim"], direction: Float[Array, " dim"]
) -> tuple[Float[Array, " dim"], Float[Array, ""]]:
    """Return `field(x)` and `v . J v` for one direction `v`; its mean over `E[v v^T] = I` is the trace."""
    value, tangent = jax.jvp(field, (x,), (direction,))
    return value, direction @ tangent
