"""Uphill walks: steps by the sign of the slope, of a length that each coordinate adapts (RPROP)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.recipe.table import Search


@eqx.filter_jit
def climb_from(
    target: Target, x: Float[Array, "n dim"], step: Float[Array, "n #dim"], num_steps: int, numbers: Search
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Float[Array, "n dim"]]:
    """Return where walks from `x` end, how high, and the steps with which they would go on.

    Each coordinate has a step of its own, which grows while its slope keeps its sign.
    """
    value_and_slope = jax.vmap(jax.value_and_grad(target.log_density))

    def tidy(value, slope):
        return jnp.where(jnp.isnan(value), -jnp.inf, value), jnp.where(jnp.isfinite(slope), slope, 0.0)

    def body(carry, _):
        x, value, slope, step = carry
        new = x + step * jnp.sign(slope)
        new_value, new_slope = tidy(*value_and_slope(new))
        better = (new_value >= value)[:, None]
        # A worse point is not taken and all its steps shrink; a better one adapts by sign.
        turned = new_slope * slope < 0
        factor = jnp.where(turned, numbers.shrink, numbers.grow)
        step = step * jnp.where(better, factor, numbers.shrink)
        keep = (jnp.where(better, new, x), jnp.where(better[:, 0], new_value, value))
        return (*keep, jnp.where(better, new_slope, slope), step), None

    value, slope = tidy(*value_and_slope(x))
    steps = jnp.broadcast_to(step, x.shape)
    (x, value, _, steps), _ = jax.lax.scan(body, (x, value, slope, steps), None, length=num_steps)
    return x, value, steps


def far_starts(
    key: Key[Array, ""], num_starts: int, dim: int, numbers: Search
) -> tuple[Float[Array, "n dim"], Float[Array, "n 1"]]:
    """Return points at all distances from the origin, and first steps in proportion."""
    key_direction, key_radius = jax.random.split(key)
    low, high = np.log(numbers.radii)
    radius = jnp.exp(jax.random.uniform(key_radius, (num_starts, 1), minval=low, maxval=high))
    return radius * jax.random.normal(key_direction, (num_starts, dim)), numbers.first_step * radius
