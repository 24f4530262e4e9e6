"""What is seen of a sampler while it trains."""

from collections.abc import Callable
from math import isfinite

import numpy as np
from jaxtyping import Array, Key

from pushforward.metrics.ksd import ksd_imq_v
from pushforward.recipe.host import (
    generator,
    heights,
    log_densities,
    on_device,
    out_of,
    sampled,
    through,
    usual,
)
from pushforward.recipe.judge import can_fall_back, some
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.training.alternating import State as Trained
from pushforward.training.alternating import alternating, averaged
from pushforward.training.loop import Row


def watch(key: Key[Array, ""], state: State, recipe: Recipe, *, weighs: bool) -> Callable[[Trained], Row]:
    """Return the monitor of a training: where it `weighs`, the effective share of some draws, else their KSD.

    And where particles could stand in for the sampler, how many nats below these its draws lie. The same
    latents serve every look, so that rows differ by the network alone.
    """
    rng, (parts, numbers) = generator(key), (state.parts, recipe.judge)
    assert parts is not None
    level, count = float("-inf"), numbers.weighed_draws
    if weighs and state.draws is not None and recipe.training.judged and can_fall_back(state.dim, recipe):
        level = float(np.median(heights(parts.target, some(rng, state.draws, count), count)))
    z = sampled(rng, parts.latent, count) if weighs else np.zeros((0, 0))
    own = log_densities(parts.latent, z) if weighs else np.zeros(0)
    sample = alternating(parts).sample

    def weighed(now: Trained) -> Row:
        height, change = through(parts.target, averaged(parts, now), z, count)
        with np.errstate(invalid="ignore"):
            weights = np.nan_to_num(height + change - own, nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
        row: Row = {
            "efficiency": usual(weights, recipe.reweight.parts),
            "inside": float(np.mean(np.isfinite(height))),
        }
        if isfinite(level):
            row["below"] = level - float(np.median(height))
        return row

    def tested(now: Trained) -> Row:
        inside = np.asarray(sample(key, now, numbers.ksd_draws), np.float64)
        draws = out_of(state.coordinates, inside)
        finite = bool(np.isfinite(draws).all())
        return {
            "ksd_imq_v": float(ksd_imq_v(on_device(draws), state.target)) if finite else float("nan"),
            # Where a log density is flat at minus infinity, no gradient ever says that draws are lost there.
            "inside": float(np.mean(np.isfinite(heights(parts.target, inside, count)))),
        }

    return weighed if weighs else tested
