"""Stage `path`: normal laws at places along walks, in place of peaks that hold no mass.

The peak of a hierarchical model may lie in a neck so narrow that next to nothing of the mass is there. On
the way up a walk passes places where a normal law covers far more. As in Pathfinder, each place is judged by
the evidence lower bound of the normal law that its curvature suggests,

    E[log q(x)] + entropy,    x ~ N(place, c^2 H^-1),

which is at most `log Z`, and near it where that law holds most of the mass. Where the normal law of a single
peak is efficient already, its weighted draws are all that particles would give.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.mcmc.annealed import resample
from pushforward.mcmc.moves import Between, Population
from pushforward.recipe.peaks import Peaks, climb_from, curvature_scales, far_starts
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, standard
from pushforward.recipe.table import PathLaplace, Recipe
from pushforward.weights import effective_share


def applies(state: State, recipe: Recipe) -> bool:
    """Where the search has found peaks."""
    return state.peaks is not None


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Join peaks by places that hold more mass; end the search where one normal law explains the target."""
    *keys, key_laplace = jax.random.split(key, 4)
    peaks = state.peaks
    assert peaks is not None
    if state.dim <= recipe.dims.many:
        peaks = with_places(keys, state.target, peaks, recipe)
    if len(peaks.points) > 1:
        yield state.replace(peaks=peaks)
        return
    state = state.replace(peaks=peaks, laplace=peaks.frame())
    assert recipe.annealing.num_particles is not None
    num_draws = recipe.annealing.num_snapshots * recipe.annealing.num_particles
    weighed = weigh_laplace(key_laplace, state, peaks.frame(), num_draws)
    yield weighed if weighed.efficiency > recipe.path.enough else state


def weigh_laplace(key: Key[Array, ""], state: State, frame: Frame, num_draws: int) -> State:
    """Return draws of the normal law of a frame, chosen by their weights, and its efficiency."""
    key_draws, key_choose = jax.random.split(key)
    law = standard(state.dim)
    u = law.sample(key_draws, num_draws)
    population = Population(u, *_ends(Between(InFrame(state.target, frame), law), u))
    w = population.log_target - population.log_start
    log_z = float(logsumexp(w)) - np.log(len(u))
    found = {"log_z": log_z, "efficiency": float(effective_share(w))}
    draws = resample(key_choose, population, w).x
    return state.replace(frame=frame, latent=law, draws=draws, log_z=log_z, rounds=(found,), good=True)


@eqx.filter_jit
def _ends(between: Between, u: Float[Array, "n dim"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    return jax.lax.map(between.ends, u, batch_size=1024)


def with_places(keys: list[Key[Array, ""]], target: Target, peaks: Peaks, recipe: Recipe) -> Peaks:
    """Return the peaks, joined by places that hold more mass than any peak, less those that hold none.

    `log_densities` are such that a peak's mass, `log_densities + log det choleskys`, is its bound.
    """
    numbers = recipe.path
    key_starts, key_peaks, key_places = keys
    points = _along_walks(key_starts, target, recipe)
    # Judging a place takes its curvature, as many passes as there are coordinates.
    points = points[:: -(-len(points) // max(1, numbers.most_passes // target.dim))]
    places = _judged(key_places, target, points, curvature_scales(target, points), numbers)
    mine = _judged(key_peaks, target, peaks.points, peaks.choleskys, numbers)
    better = np.flatnonzero(places.log_masses > mine.log_masses.max() + numbers.margin)
    better = better[np.argsort(-places.log_masses[better])][: numbers.most_kept]
    if better.size == 0:
        return peaks
    both = Peaks(*(np.concatenate([b[better], a]) for a, b in zip(mine, places, strict=True)))
    return both.rows(both.log_masses > both.log_masses.max() - numbers.window)


def _along_walks(key: Key[Array, ""], target: Target, recipe: Recipe) -> np.ndarray:
    """Return all usable points at which walks uphill were seen, one below the other."""
    numbers, seen = recipe.path, []
    x, step = far_starts(key, numbers.num_walks, target.dim, recipe.search)
    early = numbers.early if target.dim >= recipe.dims.necks else ()
    for stride in (*early, *[numbers.stride] * numbers.num_stops):
        x, value, step = climb_from(target, x, step, stride, recipe.search)
        rows = np.asarray(x, np.float64)
        seen.append(rows[np.isfinite(np.asarray(value)) & np.all(np.isfinite(rows), axis=1)])
    return np.unique(np.concatenate(seen), axis=0)


def _judged(
    key: Key[Array, ""], target: Target, points: np.ndarray, choleskys: np.ndarray, numbers: PathLaplace
) -> Peaks:
    """Return each point with the shrunk factor of the best bound, and the density that makes it its mass."""
    noise = jax.random.normal(key, (numbers.num_draws, target.dim))
    bounds = np.stack([
        np.asarray(_bounds(target, noise, _single(points), _single(c * choleskys)))
        for c in numbers.shrinkage
    ])  # fmt: skip
    best = bounds.argmax(0)
    choleskys = np.asarray(numbers.shrinkage)[best][:, None, None] * choleskys
    log_det = np.log(np.diagonal(choleskys, axis1=1, axis2=2)).sum(1)
    bound = bounds.max(0)
    return Peaks(points, choleskys, np.where(np.isfinite(bound), bound, -np.inf) - log_det)


def _single(array: np.ndarray) -> Array:
    return jax.device_put(np.asarray(array, np.float32))


@eqx.filter_jit
def _bounds(
    target: Target,
    noise: Float[Array, "n dim"],
    points: Float[Array, "k dim"],
    choleskys: Float[Array, "k dim dim"],
) -> Float[Array, " k"]:
    """Return the bound of each normal law, less `dim / 2 log(2 pi e)`, by the same draws for all."""

    def one(law):
        point, cholesky = law
        values = jax.vmap(lambda e: target.log_density(point + cholesky @ e))(noise)
        log_det = jnp.sum(jnp.log(jnp.abs(jnp.diagonal(cholesky))))
        return jnp.mean(jnp.where(jnp.isnan(values), -jnp.inf, values)) + log_det

    return jax.lax.map(one, (points, choleskys), batch_size=64)
