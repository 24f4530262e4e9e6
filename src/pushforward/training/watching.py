"""What is seen of a sampler while it trains, and when that is enough."""

from collections.abc import Callable
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
from pushforward.training.scatter import can_scatter, is_low

NUM_DRAWS, NUM_WEIGHED = 500, 2048

IN_VAIN, PATIENCE = 0.002, 1 / 3
"""The share of effective draws, about four of those weighed, with which a map has learnt nothing; and the
share of all steps after which such a map, if it also lies far below the teacher's particles, is given up."""

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

    And how many nats they lie below draws that were `taught`, by their medians.
    """
    level = None if taught is None else jnp.median(_heights(target, jax.vmap(frame)(taught[-NUM_WEIGHED:])))

    def look(state: State) -> Row:
        draws, heights = _look(target, frame, sample, key, state)
        finite = bool(jnp.all(jnp.isfinite(draws)))
        row: Row = {
            "ksd_imq_v": float(ksd_imq_v(draws, target)) if finite else float("nan"),
            "inside": float(jnp.mean(jnp.isfinite(heights))),
        }
        if level is not None:
            row["below"] = float(level - jnp.median(heights))
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
    late = row["step"] >= PATIENCE * num_steps and can_scatter(dim)
    return late and row.get("efficiency", 1.0) < IN_VAIN and is_low(row.get("below", 0.0), dim)


@eqx.filter_jit
def _look(
    target: Target, frame: Frame, sample: Any, key: Key[Array, ""], state: State
) -> tuple[Float[Array, "n dim"], Float[Array, " n"]]:
    """Return some draws, and their log densities.

    Where a log density is flat at minus infinity, no gradient ever says that draws are lost there.
    """
    draws = jax.vmap(frame)(sample(key, state, NUM_DRAWS))
    return draws, jax.vmap(target.log_density)(draws)


@eqx.filter_jit
def _heights(target: Target, x: Float[Array, "n dim"]) -> Float[Array, " n"]:
    return jax.lax.map(target.log_density, x, batch_size=NUM_DRAWS)
