"""Every rule by which a sampler is good enough, hopeless, or not to be believed.

One currency: the effective share of importance weights, and log densities beside it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.frame import InFrame
from pushforward.host import heights, mapped, sampled
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.state import State, known
from pushforward.recipe.table import Judge, Maps, Recipe
from pushforward.training.loop import Row
from pushforward.weights import log_sum, usual


class Weighing(NamedTuple):
    """How a sampler with a known density stands to its target."""

    efficiency: float
    """Effective sample size of importance sampling from it, as a share: one where it is exact."""
    log_z: float


def weigh(rng: np.random.Generator, target: Target, law: Approximation, recipe: Recipe) -> Weighing:
    """Estimate efficiency, the median over some parts of the draws, and `log Z` by importance sampling."""
    w = weighed(rng, target, law, recipe, draws_to_weigh(target.dim, recipe))
    return Weighing(usual(w, recipe.reweight.parts), float(log_sum(w)) - math.log(len(w)))


def draws_to_weigh(dim: int, recipe: Recipe) -> int:
    """Return how many draws a last word takes: fewer where each costs more than it tells."""
    numbers = recipe.reweight
    return numbers.num_draws if dim <= recipe.dims.many else numbers.num_draws_many


def some(rng: np.random.Generator, draws: Float[Array, "m dim"], count: int) -> Float[np.ndarray, "_n dim"]:
    """Return so many of the draws, any: those that follow each other are states of few particles."""
    return np.asarray(draws, np.float64)[rng.permutation(len(draws))[:count]]


def weighed(
    rng: np.random.Generator, target: Target, law: Approximation, recipe: Recipe, count: int | None = None
) -> Float[np.ndarray, " n"]:
    """Return the log importance weights of fresh draws of a law."""
    z = sampled(rng, law.latent, count or recipe.judge.mixture_draws)
    return law.weights(target, z, recipe.search.tile)


def good_for_maps(dim: int, numbers: Maps) -> float:
    """Return the efficiency from which on particles need not be seen through a map, or through another."""
    many = max(math.exp(-numbers.good_nats * dim), numbers.good_least)
    return numbers.good if dim < numbers.good_until else many


def learnt(seen: Sequence[float], numbers: Judge) -> bool:
    """Whether a sampler of these efficiencies, one a look, has nothing left to learn, or learns no more."""
    if not seen or seen[-1] > numbers.learnt:
        return bool(seen)
    late, early = seen[-numbers.settled :], seen[: -numbers.settled]
    return bool(early) and max(early) >= numbers.least and max(late) < max(early) + numbers.gain


def in_vain(row: Row, num_steps: int, dim: int, recipe: Recipe) -> bool:
    """Whether a map seen like this is nowhere near what the particles show."""
    numbers, below = recipe.judge, row.get("below", 0.0)
    patience = numbers.patience if below <= numbers.far * dim else numbers.impatience
    late = row["step"] >= patience * num_steps and can_fall_back(dim, recipe)
    # Where no draw has any weight, the share is not a number.
    return late and not row.get("efficiency", 1.0) >= numbers.in_vain and is_low(below, dim, numbers)


def can_fall_back(dim: int, recipe: Recipe) -> bool:
    """Whether particles can stand for a law in so many dimensions."""
    return 1 < dim <= recipe.fallback.most_dim


def is_low(below: float, dim: int, numbers: Judge) -> bool:
    """Whether draws so many nats below particles, by their medians, lie much lower; not a number is."""
    return not below <= numbers.low + numbers.low_each * dim


def lies_low(rng: np.random.Generator, state: State, recipe: Recipe) -> bool:
    """Whether a sampler's draws lie much lower than the particles, by the medians of their log densities."""
    target, numbers, tile = InFrame(state.target, state.coordinates), recipe.judge, recipe.search.tile
    z = sampled(rng, known(state.latent), numbers.low_draws)
    ours = heights(target, mapped(state.map, z, tile), tile)
    theirs = float(np.median(heights(target, some(rng, known(state.draws), numbers.low_draws), tile)))
    # Draws that are nowhere are nothing to come back to.
    return math.isfinite(theirs) and is_low(theirs - float(np.median(ours)), state.dim, numbers)


def least_efficiency(dim: int, numbers: Judge) -> float:
    """Return the efficiency below which a sampler in so many dimensions is `INACCURATE`."""
    return max(numbers.never, min(numbers.least, math.exp(-numbers.least_nats * dim)))


def against(dim: int, weighing: Weighing, log_z: float | None, numbers: Judge) -> str:
    """Return what speaks against a sampler, or nothing.

    Its own draws cannot tell of a mode that it has lost, but the particles can: by their `log Z`, found in
    another way.
    """
    efficiency, own = weighing.efficiency, weighing.log_z
    least = least_efficiency(dim, numbers)
    if not efficiency >= least:
        return (
            f"a share of {efficiency:.2g} of the map's draws is effective, which in {dim} dimensions should "
            f"be {least:.2g} at least."
        )
    if log_z is not None and not abs(own - log_z) <= numbers.log_z_apart:
        return (
            f"`log Z` is {own:.2f} by the map's draws and {log_z:.2f} by the annealed particles: one of "
            "the two may lack mass that the other has."
        )
    return ""
