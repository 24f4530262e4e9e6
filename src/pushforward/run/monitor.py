"""What is seen of a sampler while it trains."""

from collections.abc import Callable
from math import isfinite
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.frame import Frame
from pushforward.metrics.ksd import ksd_imq_v
from pushforward.recipe.judge import can_fall_back, heights, some, weigh
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.training.alternating import State as Trained
from pushforward.training.alternating import alternating, averaged
from pushforward.training.loop import Row


def watch(key: Key[Array, ""], state: State, recipe: Recipe, *, weighs: bool) -> Callable[[Trained], Row]:
    """Return the monitor of a training: KSD of some draws, and where it `weighs` their effective share.

    And where particles could stand in for the sampler, how many nats below these its draws lie. The same
    latents serve every look, so that rows differ by the network alone.
    """
    key_particles, key_draw, key_weigh = jax.random.split(key, 3)
    parts, numbers = state.parts, recipe.judge
    assert parts is not None
    sample, level = alternating(parts).sample, float("-inf")
    particles = state.draws if recipe.training.judged else None
    if weighs and particles is not None and can_fall_back(state.dim, recipe):
        chosen = some(key_particles, particles, numbers.weighed_draws)
        level = float(jnp.median(heights(parts.target, chosen)))

    def look(now: Trained) -> Row:
        inside, draws = _drawn(state.coordinates, sample, key_draw, now, numbers.ksd_draws)
        values = heights(parts.target, inside)
        finite = bool(jnp.all(jnp.isfinite(draws)))
        row: Row = {
            "ksd_imq_v": float(ksd_imq_v(draws, state.target)) if finite else float("nan"),
            # Where a log density is flat at minus infinity, no gradient ever says that draws are lost there.
            "inside": float(jnp.mean(jnp.isfinite(values))),
        }
        if isfinite(level):
            row["below"] = level - float(jnp.median(values))
        if weighs:
            network = averaged(parts, now)
            found = weigh(key_weigh, parts.target, parts.latent, network, numbers.weighed_draws)
            row["efficiency"] = float(found.efficiency)
        return row

    return look


@eqx.filter_jit
def _drawn(
    frame: Frame, sample: Any, key: Key[Array, ""], state: Trained, count: int
) -> tuple[Float[Array, "n dim"], Float[Array, "n dim"]]:
    """Return some draws, in the frame and out of it."""
    inside = sample(key, state, count)
    return inside, jax.vmap(frame)(inside)
