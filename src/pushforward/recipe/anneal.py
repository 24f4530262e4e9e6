"""Stage `anneal`: rounds of tempered particles and refitting, until the start is as good as the end.

Each round runs sequential Monte Carlo from a start law, then fits a frame and a mixture of normals to what
came out; the mixture, widened, is the next round's start. Rounds end when plain importance sampling from the
start is efficient, for then the particles have nothing left to correct.
"""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.frame import Frame, InFrame
from pushforward.latents import NormalMixture
from pushforward.mcmc.annealed import anneal
from pushforward.recipe.host import generator, into, on_device, out_of
from pushforward.recipe.judge import good_for_maps, weighed
from pushforward.recipe.law import stand_in, widened
from pushforward.recipe.mixtures import reweighed
from pushforward.recipe.neck_map import seen_by_necks
from pushforward.recipe.peaks import Peaks
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State
from pushforward.recipe.table import Annealing, Recipe


def applies(state: State, recipe: Recipe) -> bool:
    """Unless there are draws already."""
    return state.peaks is not None and state.draws is None


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Find modes, weights, scales and tails; yields after every round, each better than the one before."""
    target, numbers, peaks = state.target, recipe.annealing, state.peaks
    assert peaks is not None
    plan = numbers.plan(state.dim)
    frame, start = first_start(peaks, numbers)
    before = 0.0
    while True:
        i = len(state.rounds)
        key_anneal, key_fit, key_judge, key_see = jax.random.split(jax.random.fold_in(key, i), 4)
        clock.observe(f"tempered particles, round {i + 1}")
        result = anneal(key_anneal, InFrame(target, frame), start, plan)
        x = out_of(frame, np.asarray(result.draws, np.float64))
        frame, mixture = stand_in(key_fit, x, recipe, peaks.points, state.laplace)
        start, u = widened(mixture, numbers), into(frame, x)
        # Starts are wide in every coordinate, and in many that alone is inefficient: the mixture is weighed.
        found, _ = weighed(generator(key_judge), target, frame, mixture, recipe)
        row = {**result.row(), "efficiency": found}
        if isinstance(mixture, NormalMixture):
            mixture = reweighed(mixture, u, recipe.law.weight_steps)
        state = state.with_law(frame, mixture, u, row)
        state, last = _judged(key_see, state, recipe, x, found, before)
        yield state
        if last:
            return
        before = found


def _judged(
    key: Key[Array, ""], state: State, recipe: Recipe, x: np.ndarray, found: float, before: float
) -> tuple[State, bool]:
    """Return the state with what comes next, and whether that is no further round of this stage."""
    numbers, count = recipe.annealing, len(state.rounds)
    maps = state.dim <= recipe.dims.many
    wanted = numbers.good_start if count > 1 else numbers.good_at_once
    good = found > (good_for_maps(state.dim, recipe.maps) if maps else wanted)
    least, times = numbers.improves
    slow = maps and count >= numbers.rounds_before_maps and not least < found > times * before
    last = good or count == numbers.most_rounds or slow
    necks = None
    if maps and state.dim >= recipe.dims.necks and not good:
        necks = seen_by_necks(key, state.target, x, recipe, against=state)
    cost = 1.0
    if necks is not None:
        cost = recipe.necks.cost
    elif last and maps and not good:
        cost = recipe.maps.cost
    return state.replace(good=good or not maps, necks=necks, next_cost=cost), last or necks is not None


def first_start(peaks: Peaks, numbers: Annealing) -> tuple[Frame, NormalMixture]:
    """Return the frame that the peaks span, and in it a wide mixture: the peaks, and all between."""
    points, choleskys = peaks.points, peaks.choleskys
    local = np.sqrt(np.mean(np.sum(choleskys**2, axis=2), axis=0))
    scale = np.sqrt(local**2 + np.std(points, axis=0) ** 2)
    centre, dim = points.mean(0), points.shape[1]
    weights = np.exp(np.clip(peaks.log_masses - peaks.log_masses.max(), -numbers.least_mass, 0.0))
    broad = numbers.first_broad_share
    weights = np.append((1.0 - broad) * weights / weights.sum(), broad)
    straight = centre, scale, np.zeros(dim), np.zeros(dim), np.eye(dim)
    means = np.vstack([(points - centre) / scale, np.zeros(dim)])
    width = min(numbers.first_width, 1.0 + 2.0 * dim**-0.5)
    factors = np.concatenate([width * choleskys / scale[:, None], numbers.first_broad * np.eye(dim)[None]])
    return Frame(*map(on_device, straight)), NormalMixture(*map(on_device, (weights, means, factors)))
