"""Stage `anneal`: rounds of tempered particles and refitting, until the start is as good as the end.

Each round runs sequential Monte Carlo from a start law, then fits a law to what came out; that law, widened,
is the next round's start, and in its coordinates the next round's particles move. Rounds end when plain
importance sampling from the start is efficient, for then the particles have nothing left to correct.
"""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.frame import Frame
from pushforward.host import generator, on_device
from pushforward.latents import NormalMixture
from pushforward.mcmc.annealed import anneal
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.judge import good_for_maps, weighed
from pushforward.recipe.law import hangs_together, stand_in, widened
from pushforward.recipe.mixtures import reweighed
from pushforward.recipe.necks import along_necks
from pushforward.recipe.peaks import Peaks
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, known
from pushforward.recipe.table import Annealing, Recipe
from pushforward.weights import effective


def applies(state: State, recipe: Recipe) -> bool:
    """Unless there are draws already."""
    return state.peaks is not None and state.draws is None


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Find modes, weights, scales and tails; yields after every round, each better than the one before."""
    plan, tile = recipe.annealing.plan(state.dim), recipe.search.tile
    law = first_start(known(state.peaks), recipe.annealing)
    start, last = law.latent, False
    while not last:
        key_anneal, key_fit = jax.random.split(jax.random.fold_in(key, len(state.rounds)))
        clock.observe(f"tempered particles, round {len(state.rounds) + 1}")
        result = anneal(key_anneal, law.inside(state.target), start, plan)
        x = law.draws(np.asarray(result.draws, np.float64), tile)
        law, w = _fitted(key_fit, state, recipe, x, law)
        before, found = state.efficiency, effective(w)
        row = {**result.row(), "efficiency": found, "necks": len(law.necks)}
        state = state.with_law(law, x, row, one_normal=hangs_together(law.latent, recipe.law))
        state, last = _judged(state, recipe, found, before)
        start = widened(law, recipe)
        yield state


def _fitted(
    key: Key[Array, ""], state: State, recipe: Recipe, x: np.ndarray, before: Approximation
) -> tuple[Approximation, np.ndarray]:
    """Return the law that stands best for draws, along necks if need be, and its log importance weights.

    Starts are wide in every coordinate, and in many that alone is inefficient: so the law itself is weighed.
    """
    key_law, key_judge = jax.random.split(key)
    rng = generator(key_judge)
    law, w, bound = before, np.zeros(0), -np.inf
    if not before.necks:
        law = stand_in(key_law, x, recipe, known(state.peaks).points, state.laplace)
        w = weighed(rng, state.target, law, recipe)
        if isinstance(law.latent, NormalMixture):
            z = law.latents(x, recipe.search.tile)
            law = law._replace(latent=reweighed(law.latent, z, recipe.law.weight_steps))
        if state.dim > recipe.dims.many or effective(w) > good_for_maps(state.dim, recipe.maps):
            return law, w
        bound = float(np.mean(w))
    seen = along_necks(rng, state.target, x, recipe, bound)
    law = seen or law
    return law, w if seen is None and len(w) else weighed(rng, state.target, law, recipe)


def _judged(state: State, recipe: Recipe, found: float, before: float) -> tuple[State, bool]:
    """Return the state with what comes next, and whether that is no further round of this stage."""
    numbers, count = recipe.annealing, len(state.rounds)
    along = sum(row["necks"] > 0 for row in state.rounds)
    maps = state.dim <= recipe.dims.many
    wanted = numbers.good_start if count > 1 else numbers.good_at_once
    good = found > (good_for_maps(state.dim, recipe.maps) if maps else wanted)
    if along:
        # A first round along necks reaches their ends.
        last = (along > 1 and found > recipe.necks.good) or along > recipe.necks.rounds
        return state.replace(good=good, next_cost=recipe.maps.cost if last else recipe.necks.cost), last
    least, times = numbers.improves
    slow = maps and count >= numbers.rounds_before_maps and not least < found > times * before
    last = good or count == numbers.most_rounds or slow
    cost = recipe.maps.cost if last and maps and not good else 1.0
    return state.replace(good=good or not maps, next_cost=cost), last


def first_start(peaks: Peaks, numbers: Annealing) -> Approximation:
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
    mixture = NormalMixture(*map(on_device, (weights, means, factors)))
    return Approximation(Frame(*map(on_device, straight)), mixture)
