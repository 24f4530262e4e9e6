"""How draws share themselves out over the modes of a target."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import entr
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.kernels import squared_distances
from pushforward.metrics.inputs import check_draws


def mode_weights(draws: Float[Array, "n dim"], centres: Float[Array, "k dim"]) -> Float[Array, " k"]:
    """Return the share of the draws that lie nearest to each centre."""
    centres = check_draws(centres, "centres", at_least=1)
    draws = check_draws(draws, dim=centres.shape[1], at_least=1)
    return _shares(draws, centres)


def mode_weight_error(draws: Float[Array, "n dim"], target: Target) -> Float[Array, ""]:
    """Return the largest difference between a mode's share of the draws and its true weight.

        max over k of | share_k - w_k |

    Shares are by nearest centre, which is fair where modes are well apart: modes that overlap
    give even exact draws an error that does not vanish with n. `floor` shows it.

    **Arguments:**

    - `draws`: shape `(n, dim)`.
    - `target`: a mixture, with `weights` and `means`.
    """
    weights, means = _components(target)
    return jnp.max(jnp.abs(mode_weights(draws, means) - weights))


def emc(draws: Float[Array, "n dim"], centres: Float[Array, "k dim"]) -> Float[Array, ""]:
    """Return the entropic mode coverage: the entropy of the draws' shares over its maximum.

        - sum over k of share_k log share_k / log k

    0 when all draws sit at one mode, 1 when every mode has as many. It is a measure of coverage
    for modes of equal weight; for others see `mode_weight_error`.
    """
    centres = check_draws(centres, "centres", at_least=2)
    return jnp.sum(entr(mode_weights(draws, centres))) / jnp.log(centres.shape[0])


@eqx.filter_jit
def _shares(draws: Float[Array, "n dim"], centres: Float[Array, "k dim"]) -> Float[Array, " k"]:
    nearest = jnp.argmin(squared_distances(draws, centres), axis=1)
    counts = jnp.zeros(centres.shape[0], draws.dtype).at[nearest].add(1)
    return counts / draws.shape[0]


def _components(target: Any) -> tuple[Float[Array, " k"], Float[Array, "k dim"]]:
    if not (hasattr(target, "weights") and hasattr(target, "means")):
        raise TypeError(
            f"`target` must know its modes, as `weights` and `means`; {type(target).__name__} "
            "does not. Use a mixture, or `mode_weights(draws, centres)` with centres of your own."
        )
    return target.weights, target.means
