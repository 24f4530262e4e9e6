"""Stage `search`: where mass may lie.

Uphill walks begin at distances over six orders of magnitude, and each coordinate adapts its step (RPROP), so
that shift and scale cost only logarithms. A walk ends on the peak from which it is the fewest deviations
away, so a narrow peak among wide ones draws in next to none. Whether a place belongs to a known peak, one
look tells: very many places are looked at, and further walks begin where

    log q(x) - max_k ( log q(p_k) - |L_k^-1 (x - p_k)|^2 / 2 )

says that no normal law around a known peak `p_k` explains how high the density is there.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.operations import DENSE, operations
from pushforward.recipe.peaks import (
    Peaks,
    climb_from,
    curvature_scales,
    far_starts,
    foremost,
    joined,
    once_each,
    that_matter,
    to_the_top,
)
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State
from pushforward.recipe.table import Dimensions, Recipe, Search


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Find the peaks of the target."""
    clock.observe("looking for modes")
    yield state.replace(peaks=find_peaks(key, state.target, recipe.search, recipe.dims))


def find_peaks(
    key: Key[Array, ""], target: Target, numbers: Search | None = None, dims: Dimensions | None = None
) -> Peaks:
    """Return the places where mass may lie, from the log density alone."""
    numbers, dims = numbers or Search(), dims or Dimensions()
    many = target.dim > dims.many
    num_walks = numbers.num_walks_many if many else numbers.num_walks
    key_far, key_rounds = jax.random.split(key)
    starts = far_starts(key_far, num_walks, target.dim, numbers)
    peaks = climb(target, *starts, numbers.walk_steps, numbers, dims)
    if peaks is None:
        raise ValueError(
            f"`target`: the log density of {target.name!r} was not finite at any of {num_walks} starts "
            f"between {numbers.radii[0]:g} and {numbers.radii[1]:g} from the origin. Check its support, or "
            "shift it."
        )
    if many:
        return peaks
    quiet = 0
    for i in range(numbers.rounds):
        known, most = len(peaks.points), peaks.log_masses.max()
        starts = _next_starts(jax.random.fold_in(key_rounds, i), target, num_walks, peaks, numbers)
        more = climb(target, *starts, numbers.round_steps, numbers, dims)
        peaks = peaks if more is None else joined(peaks, more, numbers)
        # Peaks may be fewer than before where one was found next to which others do not matter.
        news = len(peaks.points) > known or peaks.log_masses.max() > most + numbers.news
        quiet = 0 if news else quiet + 1
        # Where there are several peaks, there may be one that a single round has not come upon.
        if quiet >= (1 if known == 1 else 2):
            break
    return peaks


def climb(
    target: Target,
    starts: Float[Array, "n dim"],
    step: Float[Array, "n #dim"],
    num_steps: int,
    numbers: Search,
    dims: Dimensions,
) -> Peaks | None:
    """Return the peaks above `starts`, with first steps of that length; `None` if no start is usable."""
    found = climb_from(target, starts, step, num_steps, numbers)
    x, value = (np.asarray(each, np.float64) for each in found[:2])
    usable = np.isfinite(value) & np.all(np.isfinite(x), axis=1)
    if not usable.any():
        return None
    x, value = x[usable], value[usable]
    order = np.argsort(-value)
    return _distinct(target, x[order], value[order], numbers, dims)


def _distinct(target: Target, x: np.ndarray, value: np.ndarray, numbers: Search, dims: Dimensions) -> Peaks:
    """Keep one walk of each peak; a peak's size is its Laplace mass, `log q + log det scale`."""
    many = target.dim > dims.many
    # Walks on one peak end within rounding of each other, or along its ridge where it has one.
    spread = np.std(x, axis=0) + 1e-12
    apart: list[int] = []
    for i in range(len(x)):
        known = x[apart]
        if np.all(np.max(np.abs(x[i] - known) / (1e-3 * spread + 1e-4 * np.abs(known) + 1e-8), axis=1) > 1):
            apart.append(i)
    limit = numbers.most_peaks_many if many else numbers.most_peaks
    kept = [apart[i] for i in foremost(x[apart], value[apart], limit, numbers)]
    points, value = x[kept], value[kept]
    points, value = to_the_top(target, points, value, numbers, dear=many)
    peaks = Peaks(points, curvature_scales(target, points, spread), value)
    return that_matter(peaks.rows(once_each(peaks, numbers)), numbers)


def _next_starts(
    key: Key[Array, ""], target: Target, num_walks: int, peaks: Peaks, numbers: Search
) -> tuple[Float[Array, "n dim"], Float[Array, "n dim"]]:
    """Return places that known peaks do not explain, at most half of all, and points around the peaks."""
    key_near, key_places = jax.random.split(key)
    x, step = _near_starts(key_near, num_walks, peaks, numbers)
    places, width = unexplained_places(key_places, target, peaks, num_walks // 2, numbers)
    return x.at[: len(places)].set(places), step.at[: len(places)].set(width)


def _near_starts(
    key: Key[Array, ""], num_walks: int, peaks: Peaks, numbers: Search
) -> tuple[Float[Array, "n dim"], Float[Array, "n dim"]]:
    """Return points around peaks, some deviations off, and first steps of a tenth of the way."""
    key_peak, key_direction, key_radius = jax.random.split(key, 3)
    k, dim = peaks.points.shape
    which = jax.random.randint(key_peak, (num_walks,), 0, k)
    factors = jnp.asarray(peaks.choleskys, float)[which]
    low, high = np.log(numbers.round_deviations)
    radius = jnp.exp(jax.random.uniform(key_radius, (num_walks, 1), minval=low, maxval=high))
    away = jnp.einsum("nij,nj->ni", factors, jax.random.normal(key_direction, (num_walks, dim)))
    step = numbers.first_step * radius * jnp.linalg.norm(factors, axis=2)
    return jnp.asarray(peaks.points, float)[which] + radius * away, step


def unexplained_places(
    key: Key[Array, ""], target: Target, peaks: Peaks, most: int, numbers: Search
) -> tuple[Float[Array, "_n dim"], Float[Array, " dim"]]:
    """Return at most so many places that no known peak explains, and each coordinate's least width at a peak.

    Fewer places are looked at for few of them.
    """
    # A peak known twice explains no more than once, and few numbers of peaks make few programs.
    known = len(peaks.points)
    rows = np.resize(
        np.arange(known), numbers.few_peaks if known <= numbers.few_peaks else numbers.most_peaks
    )
    points, factors, tops = (jnp.asarray(each[rows], float) for each in peaks)
    each = operations(target) + DENSE * len(rows) * target.dim**2
    share = min(1.0, most / numbers.most_places) * (numbers.alone if known == 1 else 1.0)
    looks = int(share * min(numbers.looks, numbers.look_entries / target.dim, numbers.look_work / each))
    x = _places(key, points, factors, max(looks, most), numbers)
    # In double precision: far out, single would be off by as many nats as count.
    whitens = jnp.asarray(np.linalg.inv(peaks.choleskys[rows]), float)
    heights, above = (np.asarray(each) for each in _seen(target, x, points, whitens, tops, numbers.tile))
    found = np.flatnonzero(above > numbers.unexplained)
    # The least explained may all be far out in one heavy tail, the highest all at the foot of one peak.
    chosen = [found[np.argsort(-by[found])[: most // 2]] for by in (above, heights)]
    return x[np.union1d(*chosen)], jnp.min(jnp.linalg.norm(factors, axis=2), axis=0)


@eqx.filter_jit
def _places(
    key: Key[Array, ""],
    points: Float[Array, "k dim"],
    factors: Float[Array, "k dim dim"],
    count: int,
    numbers: Search,
) -> Float[Array, "_n dim"]:
    """Return places in a box around all peaks, and around each as far as peaks are apart, or are wide."""
    key_box, key_peak, key_radius, key_noise = jax.random.split(key, 4)
    third, dim = -(-count // 3), points.shape[1]
    width = jnp.max(jnp.linalg.norm(factors, axis=2), axis=0)
    low, high = jnp.min(points, axis=0) - 3.0 * width, jnp.max(points, axis=0) + 3.0 * width
    pad = numbers.padding * (high - low)
    box = jax.random.uniform(key_box, (third, dim), minval=low - pad, maxval=high + pad)
    which = jax.random.randint(key_peak, (2, third), 0, len(points))
    u, noise = jax.random.uniform(key_radius, (2, third, 1)), jax.random.normal(key_noise, (2, third, dim))
    spread = jnp.sqrt(jnp.var(points, axis=0) + width**2)
    apart = points[which[0]] + _between(u[0], numbers.apart) * spread * noise[0]
    own = jax.lax.map(lambda one: factors[one[0]] @ one[1], (which[1], noise[1]), batch_size=numbers.tile)
    return jnp.concatenate([box, apart, points[which[1]] + _between(u[1], numbers.wide) * own])


def _between(u: Array, ends: tuple[float, float]) -> Array:
    """Return numbers between two, even in their logarithms."""
    low, high = np.log(ends)
    return jnp.exp(low + (high - low) * u)


@eqx.filter_jit
def _seen(
    target: Target,
    x: Float[Array, "n dim"],
    points: Float[Array, "k dim"],
    whitens: Float[Array, "k dim dim"],
    tops: Float[Array, " k"],
    tile: int,
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Return how high each place is, and how much higher than known peaks explain."""

    def one(place):
        height = target.log_density(place)
        away = jnp.einsum("kij,kj->ki", whitens, place - points)
        known = jnp.max(tops - 0.5 * jnp.sum(away**2, axis=1))
        return jnp.where(jnp.isfinite(height), height, -jnp.inf), height - known

    heights, above = jax.lax.map(one, x, batch_size=tile)
    return heights, jnp.where(jnp.isfinite(above), above, -jnp.inf)
