"""Stage `path`: normal laws at places along walks, in place of peaks that hold no mass.

The peak of a hierarchical model may lie in a neck so narrow that next to nothing of the mass is there. On
the way up a walk passes places where a normal law covers far more. As in Pathfinder, each place is judged by
the evidence lower bound of the normal law that its curvature suggests,

    E[log q(x)] + entropy,    x ~ N(place, c^2 H^-1),

which is at most `log Z`, and near it where that law holds most of the mass. Where the normal law of a single
peak is efficient already, its weighted draws are all that particles would give.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.host import generator, heights, out_of
from pushforward.latents import standard
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.peaks import Peaks, curvature_scales
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, known
from pushforward.recipe.table import Recipe
from pushforward.weights import chosen_by, effective, log_sum


def applies(state: State, recipe: Recipe) -> bool:
    """Where the search has found peaks, and nothing yet is drawn from."""
    return state.peaks is not None and state.draws is None


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Join peaks by places that hold more mass; end the search where one normal law explains the target."""
    rng, peaks = generator(key), known(state.peaks)
    if state.dim <= recipe.dims.many:
        peaks = with_places(rng, state, recipe)
    state = state.replace(peaks=peaks, trail=None)
    if len(peaks.points) > 1:
        yield state
        return
    law = Approximation(peaks.frame(), standard(state.dim))
    state = state.replace(laplace=law.frame)
    num_draws = recipe.annealing.num_snapshots * known(recipe.annealing.num_particles)
    u = rng.standard_normal((num_draws, state.dim))
    w = law.weights(state.target, u, recipe.search.tile)
    row = {"log_z": float(log_sum(w)) - np.log(len(u)), "efficiency": effective(w)}
    if row["efficiency"] > recipe.path.enough:
        state = state.with_law(law, out_of(law.frame, u[chosen_by(rng, w)]), row, good=True)
    yield state


def with_places(rng: np.random.Generator, state: State, recipe: Recipe) -> Peaks:
    """Return the peaks, joined by places that hold more mass than any peak, less those that hold none.

    `log_densities` are such that a peak's mass, `log_densities + log det choleskys`, is its bound.
    """
    numbers, target, peaks, trail = recipe.path, state.target, known(state.peaks), known(state.trail)
    # Judging a place takes its curvature, as many passes as there are coordinates.
    points = trail[:: -(-len(trail) // max(1, numbers.most_passes // target.dim))]
    noise = rng.standard_normal((numbers.num_draws, target.dim))
    places = _judged(noise, target, points, curvature_scales(target, points, recipe.search), recipe)
    mine = _judged(noise, target, peaks.points, peaks.choleskys, recipe)
    better = np.flatnonzero(places.log_masses > mine.log_masses.max() + numbers.margin)
    better = better[np.argsort(-places.log_masses[better])][: numbers.most_kept]
    if better.size == 0:
        return peaks
    both = Peaks(*(np.concatenate([b[better], a]) for a, b in zip(mine, places, strict=True)))
    return both.rows(both.log_masses > both.log_masses.max() - numbers.window)


def _judged(
    noise: np.ndarray, target: Target, points: np.ndarray, choleskys: np.ndarray, recipe: Recipe
) -> Peaks:
    """Return each point with the shrunk factor of the best bound, and the density that makes it its mass."""
    shares = np.asarray(recipe.path.shrinkage)
    away = np.einsum("kij,nj->kni", choleskys, noise)
    x = points[:, None] + shares[:, None, None, None] * away
    found = heights(target, x.reshape(-1, target.dim), recipe.search.tile).reshape(x.shape[:-1])
    log_det = np.log(np.diagonal(choleskys, axis1=1, axis2=2)).sum(1)
    bounds = found.mean(axis=2) + log_det + target.dim * np.log(shares)[:, None]
    best = bounds.argmax(0)
    choleskys = shares[best][:, None, None] * choleskys
    return Peaks(points, choleskys, bounds.max(0) - log_det - target.dim * np.log(shares[best]))
