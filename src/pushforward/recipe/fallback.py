"""Stage `fallback`: particles, each a Langevin step wide, where no map came near them.

Laws with symmetries, such as those of particles that may turn and change places, lie along thin shells that
no mixture of a few normals and no map that keeps its neighbours together can follow. Tempered particles can.
"""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.frame import InFrame
from pushforward.host import generator, heights, on_device, scores_at
from pushforward.latents import NormalMixture
from pushforward.recipe.judge import can_fall_back, least_efficiency, lies_low, some
from pushforward.recipe.reweight import is_cut
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, known
from pushforward.recipe.table import Recipe
from pushforward.training.outcome import Outcome


def applies(state: State, recipe: Recipe) -> bool:
    """Where a sampler was judged, found too inefficient, and particles can stand for the law."""
    # An efficient map with another `log Z` may be the one that is right.
    judged = recipe.training.judged and "efficiency" in state.metrics and state.draws is not None
    poor = judged and not state.metrics["efficiency"] >= least_efficiency(state.dim, recipe.judge)
    ended = state.outcome.good or state.outcome is Outcome.INACCURATE
    return poor and ended and can_fall_back(state.dim, recipe)


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Hand back the particles where the map's draws lie much lower than theirs."""
    key_look, key_walk = jax.random.split(key)
    if is_cut(state.outcome, clock) or not lies_low(generator(key_look), state, recipe):
        return
    clock.observe("particles go on by replica exchange")
    # What only cuts must not change what comes out.
    end = clock.until(recipe.clock.walk_until) if clock.plans else float("inf")
    inside = InFrame(state.target, state.coordinates)
    latent = around_particles(key_walk, inside, known(state.draws), recipe, end)
    notes = {f"map_{n}": v for n, v in state.metrics.items()} | {"particles": len(latent.weights)}
    why = f"{state.why} The sampler is the annealed particles instead, each moved a little."
    state = state.replace(latent=latent, network=None, reverted=True, notes=notes, why=why)
    yield state.replace(metrics={"log_z": known(state.log_z)})


def around_particles(
    key: Key[Array, ""],
    target: Target,
    draws: Float[Array, "m dim"],
    recipe: Recipe,
    deadline: float = np.inf,
) -> NormalMixture:
    """Return equal normals around the points to which a Langevin step's drift takes particles.

    `x + h^2 score(x) / 2 + h N(0, I)`, with the longest `h` that hardly lowers the log density. The drift
    makes up for what the noise adds, so that a step may be longer than plain noise could be wide. The
    particles are the annealed ones, gone on by replica exchange.
    """
    from pushforward.mcmc.exchange import exchanged  # of no use to most fits

    numbers, tile = recipe.fallback, recipe.search.tile
    key_host, key_walk = jax.random.split(key)
    rng = generator(key_host)
    within = np.asarray(draws, np.float64)
    within = on_device(within[np.isfinite(heights(target, within, tile))])
    points = some(rng, exchanged(key_walk, target, within, numbers, deadline), numbers.most)
    before, scores = heights(target, points, tile), scores_at(target, points, tile)
    eps = rng.standard_normal(points.shape)

    def centres(size: float) -> Float[np.ndarray, "n dim"]:
        return points + 0.5 * size**2 * scores

    def is_gentle(size: float) -> bool:
        fallen = before - heights(target, centres(size) + size * eps, tile)
        return bool(np.mean(np.clip(fallen, -numbers.worst, numbers.worst)) <= numbers.drop * target.dim)

    sizes = [float(size) for size in np.geomspace(*numbers.step_range, numbers.num_steps)]
    size = next((size for size in sizes if is_gentle(size)), sizes[-1])
    weights, factor = np.full(len(points), 1.0 / len(points)), size * np.eye(target.dim)[None]
    return NormalMixture(*map(on_device, (weights, centres(size), factor)))
