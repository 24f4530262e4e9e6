"""What is seen of a sampler while it trains."""

from collections.abc import Callable
from math import isfinite

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.frame import Frame
from pushforward.metrics.ksd import ksd_imq_v
from pushforward.recipe.judge import can_fall_back, heights, some, weigh
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.training.alternating import Parts, alternating, averaged
from pushforward.training.alternating import State as Trained
from pushforward.training.loop import Row


def watch(key: Key[Array, ""], state: State, recipe: Recipe, *, weighs: bool) -> Callable[[Trained], Row]:
    """Return the monitor of a training: KSD of some draws, and where it `weighs` their effective share.

    And where particles could stand in for the sampler, how many nats below these its draws lie. The same
    latents serve every look, so that rows differ by the network alone.
    """
    key_particles, key_draw, key_weigh = jax.random.split(key, 3)
    parts, numbers, level = state.parts, recipe.judge, float("-inf")
    assert parts is not None
    if weighs and recipe.training.judged and state.draws is not None and can_fall_back(state.dim, recipe):
        chosen = some(key_particles, state.draws, numbers.weighed_draws)
        level = float(jnp.median(heights(parts.target, chosen)))

    def look(now: Trained) -> Row:
        inside, draws = _drawn(parts, state.coordinates, key_draw, now, numbers.ksd_draws)
        values, finite = heights(parts.target, inside), jnp.all(jnp.isfinite(draws))
        row: Row = {
            "ksd_imq_v": float(ksd_imq_v(draws, state.target)) if finite else float("nan"),
            # Where a log density is flat at minus infinity, no gradient ever says that draws are lost there.
            "inside": float(jnp.mean(jnp.isfinite(values))),
        }
        if isfinite(level):
            row["below"] = level - float(jnp.median(values))
        if weighs:
            weighing = (parts.target, parts.latent, averaged(parts, now), numbers.weighed_draws)
            row["efficiency"] = float(weigh(key_weigh, *weighing).efficiency)
        return row

    return look


@eqx.filter_jit
def _drawn(
    parts: Parts, frame: Frame, key: Key[Array, ""], state: Trained, count: int
) -> tuple[Float[Array, "n dim"], Float[Array, "n dim"]]:
    """Return some draws, in the frame and out of it."""
    inside = alternating(parts).sample(key, state, count)
    return inside, jax.vmap(frame)(inside)
