"""Every metric under one signature: a key, the draws, and the target they claim to come from.

So a study and its `floor` cannot differ in protocol: both call the same function by the same name.
"""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import ExactTarget
from pushforward.metrics.ksd import ksd_imq_u, ksd_imq_v, ksd_rbf_u
from pushforward.metrics.moments import mean_error, sd_ratio
from pushforward.metrics.two_sample import energy_distance, mmd, sliced_w2

Protocol: TypeAlias = Callable[[Key[Array, ""], Float[Array, "n dim"], ExactTarget], Float[Array, ""]]
"""`protocol(key, draws, target) -> value`; a reference, where needed, is drawn at equal size."""


def against_exact(
    key: Key[Array, ""],
    draws: Float[Array, "n dim"],
    target: ExactTarget,
    *,
    distance: Callable[..., Float[Array, ""]],
    transform: Callable[[Float[Array, "n dim"]], Float[Array, "n dim"]] | None = None,
) -> Float[Array, ""]:
    """Return `distance(key, draws, exact)` with as many exact draws as there are draws.

    **Arguments:**

    - `key`, `draws`, `target`: as for every protocol.
    - `distance`: a two-sample distance that takes a key first.
    - `transform`: applied to both sides first, for instance an `equinox.Partial` of `in_asinh`.
    """
    key_exact, key_distance = jax.random.split(key)
    exact = exact_draws(key_exact, target, draws.shape[0])
    if transform is not None:
        draws, exact = transform(draws), transform(exact)
    return distance(key_distance, draws, exact)


@eqx.filter_jit
def exact_draws(key: Key[Array, ""], target: ExactTarget, n: int) -> Float[Array, "n dim"]:
    """Return exact draws; compiled, since floors ask for them a thousand times."""
    return target.sample(key, n)


PROTOCOLS: dict[str, Protocol] = {
    "ksd_imq_v": lambda key, draws, target: ksd_imq_v(draws, target),
    "ksd_imq_u": lambda key, draws, target: ksd_imq_u(draws, target),
    "ksd_rbf_u": lambda key, draws, target: ksd_rbf_u(draws, target),
    "sliced_w2": eqx.Partial(against_exact, distance=sliced_w2),
    "mmd": eqx.Partial(against_exact, distance=lambda key, x, y: mmd(x, y)),
    "energy_distance": eqx.Partial(against_exact, distance=lambda key, x, y: energy_distance(x, y)),
    # Of all coordinates the worst: the largest shift, and the ratio farthest from 1 as a factor.
    "mean_error": lambda key, draws, target: jnp.max(jnp.abs(mean_error(draws, target))),
    "sd_ratio": lambda key, draws, target: _farthest_from_one(sd_ratio(draws, target)),
}
"""The metrics of the records, by name."""


def _farthest_from_one(ratios: Float[Array, " dim"]) -> Float[Array, ""]:
    return ratios[jnp.argmax(jnp.abs(jnp.log(ratios)))]
