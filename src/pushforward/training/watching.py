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

NUM_DRAWS, NUM_WEIGHED = 500, 2048

LEARNT = 0.99
"""The share of effective draws from which on there is nothing left to learn. It sees little of thin ends: one
hundredth of the mass at half its density costs a hundredth of the share."""


def watch(
    key: Key[Array, ""], target: Target, frame: Frame, parts: Parts, sample: Any, *, weighs: bool
) -> Callable[[State], Row]:
    """Return the monitor of a training: KSD of some draws, and where it `weighs` their effective share."""

    def look(state: State) -> Row:
        draws, inside = _look(target, frame, sample, key, state)
        finite = bool(jnp.all(jnp.isfinite(draws)))
        row: Row = {
            "ksd_imq_v": float(ksd_imq_v(draws, target)) if finite else float("nan"),
            "inside": float(inside),
        }
        if weighs:
            found = weigh(key, parts.target, parts.latent, averaged(parts, state), NUM_WEIGHED)
            row["efficiency"] = float(found.efficiency)
        return row

    return look


def learnt(row: Row) -> bool:
    """Say whether a sampler seen like this has nothing left to learn."""
    return row.get("efficiency", 0.0) > LEARNT


@eqx.filter_jit
def _look(
    target: Target, frame: Frame, sample: Any, key: Key[Array, ""], state: State
) -> tuple[Float[Array, "n dim"], Float[Array, ""]]:
    """Return some draws, and the share of them at which the target has a finite log density.

    Where a log density is flat at minus infinity, no gradient ever says that draws are lost there.
    """
    draws = jax.vmap(frame)(sample(key, state, NUM_DRAWS))
    return draws, jnp.mean(jnp.isfinite(jax.vmap(target.log_density)(draws)))
