"""How draws share themselves out over the modes of a mixture, each draw counted at the nearest centre.

Modes that overlap give even exact draws an error that does not vanish with n: hold it against its floor.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.kernels import squared_distances
from pushforward.metrics.inputs import check_draws


@eqx.filter_jit
def mode_weights(draws: Float[Array, "n dim"], centres: Float[Array, "k dim"]) -> Float[Array, " k"]:
    """Return the share of the draws that lie nearest to each centre."""
    nearest = jnp.argmin(squared_distances(draws, centres), axis=1)
    return jnp.zeros(len(centres), draws.dtype).at[nearest].add(1) / len(draws)


def mode_weight_error(draws: Float[Array, "n dim"], target: Target) -> Float[Array, ""]:
    """Return the largest difference between a mode's share of the draws and its true weight."""
    weights, means = getattr(target, "weights", None), getattr(target, "means", None)
    if weights is None or means is None:
        name = type(target).__name__
        raise TypeError(f"`target` must know its modes, as `weights` and `means`; {name} does not.")
    return jnp.max(jnp.abs(mode_weights(check_draws(draws, dim=target.dim), means) - weights))
