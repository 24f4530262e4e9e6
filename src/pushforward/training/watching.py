"""What is seen of a sampler while it trains, and when that is enough."""

from collections.abc import Callable
from math import isfinite
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.metrics import ksd_imq_v
from pushforward.training.alternating import Parts, State, averaged
from pushforward.training.loop import Row
from pushforward.training.repair import weigh
from pushforward.training.scatter import can_scatter, heights, is_low, some

NUM_DRAWS, NUM_WEIGHED = 500, 2048

IN_VAIN, PATIENCE = 0.01, 1 / 3
"""The share of effective draws, about twenty of those weighed, with which a map has learnt next to nothing;
and that of all steps after which such a map is given up, if it also lies far below what was taught."""

FAR, IMPATIENCE = 0.5, 0.1
"""Nats in each coordinate by which a map lies so far below that it is given up after this share already."""

LEARNT = 0.99
"""The share of effective draws from which on there is nothing left to learn. It sees little of thin ends: one
hundredth of the mass at half its density costs a hundredth of the share."""


def watch(
    key: Key[Array, ""],
    target: Target,
    frame: Frame,
    parts: Parts,
    sample: Any,
    *,
    weighs: bool,
    taught: Float[Array, "m dim"] | None = None,
) -> Callable[[State], Row]:
    """Return the monitor of a training: KSD of some draws, and where it `weighs` their effective share.

    And where draws were `taught` that could stand in for them, how many nats below these they lie.
    """
    level = float("-inf")
    if weighs and taught is not None and can_scatter(target.dim):
        level = float(jnp.median(heights(parts.target, some(key, taught, NUM_WEIGHED))))

    def look(state: State) -> Row:
        inside, draws = _drawn(frame, sample, key, state)
        values = heights(parts.target, inside)
        finite = bool(jnp.all(jnp.isfinite(draws)))
        row: Row = {
            "ksd_imq_v": float(ksd_imq_v(draws, target)) if finite else float("nan"),
            # Where a log density is flat at minus infinity, no gradient ever says that draws are lost there.
            "inside": float(jnp.mean(jnp.isfinite(values))),
        }
        if isfinite(level):
            row["below"] = level - float(jnp.median(values))
        if weighs:
            found = weigh(key, parts.target, parts.latent, averaged(parts, state), NUM_WEIGHED)
            row["efficiency"] = float(found.efficiency)
        return row

    return look


def learnt(row: Row) -> bool:
    """Say whether a sampler seen like this has nothing left to learn."""
    return row.get("efficiency", 0.0) > LEARNT


def in_vain(row: Row, num_steps: int, dim: int) -> bool:
    """Say whether a map seen like this is nowhere near what its teacher's particles show."""
    below = row.get("below", 0.0)
    patience = PATIENCE if below <= FAR * dim else IMPATIENCE
    late = row["step"] >= patience * num_steps and can_scatter(dim)
    # Where no draw has any weight, the share is not a number.
    return late and not row.get("efficiency", 1.0) >= IN_VAIN and is_low(below, dim)


@eqx.filter_jit
def _drawn(
    frame: Frame, sample: Any, key: Key[Array, ""], state: State
) -> tuple[Float[Array, "n dim"], Float[Array, "n dim"]]:
    """Return some draws, in the frame and out of it."""
    inside = sample(key, state, NUM_DRAWS)
    return inside, jax.vmap(frame)(inside)
