"""Stage `search`: where mass may lie.

Uphill walks begin at distances over six orders of magnitude, and each coordinate adapts its step (RPROP), so
that shift and scale cost only logarithms. A walk ends on the peak from which it is the fewest deviations
away, so a narrow peak among wide ones draws in next to none. Whether a place belongs to a known peak, one
look tells: very many places are looked at, and further walks begin where

    log q(x) - max_k ( log q(p_k) - |L_k^-1 (x - p_k)|^2 / 2 )

says that no normal law around a known peak `p_k` explains how high the density is there.
"""

import time
from collections.abc import Iterator

import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.host import generator, heights, squares
from pushforward.operations import DENSE, operations
from pushforward.recipe.peaks import Peaks, Walks, between, climb_from, far_starts, joined, tops_of
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State
from pushforward.recipe.table import Dimensions, Recipe, Search


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Find the peaks of the target, and places on the way to them."""
    clock.observe("looking for modes")
    until = clock.until(recipe.clock.search_until) if clock.plans else float("inf")
    peaks, trail = search_all(generator(key), state.target, recipe.search, recipe.dims, until)
    yield state.replace(peaks=peaks, trail=trail)


def find_peaks(
    key: Key[Array, ""], target: Target, numbers: Search | None = None, dims: Dimensions | None = None
) -> Peaks:
    """Return the places where mass may lie, from the log density alone."""
    return search_all(generator(key), target, numbers or Search(), dims or Dimensions())[0]


def search_all(
    rng: np.random.Generator, target: Target, numbers: Search, dims: Dimensions, until: float = float("inf")
) -> tuple[Peaks, Float[np.ndarray, "m dim"]]:
    """Return the peaks, and places at which walks from afar were seen.

    Peaks are those where walks from afar ended, and what rounds find besides that begin in time.
    """
    num_walks = numbers.num_walks_many if target.dim > dims.many else numbers.num_walks
    x, step = far_starts(rng, num_walks, target.dim, numbers)
    walks, seen = Walks(x, np.zeros(0), step), []
    for num_steps in numbers.strides:
        walks = climb_from(target, walks.points, walks.steps, num_steps, numbers)
        usable = np.isfinite(walks.values) & np.isfinite(walks.points).all(axis=1)
        seen.append(walks.points[: numbers.num_seen][usable[: numbers.num_seen]])
    trail = np.unique(np.concatenate(seen), axis=0)
    peaks = tops_of(target, walks, numbers, dims)
    if peaks is None:
        raise ValueError(
            f"`target`: the log density of {target.name!r} was not finite at any of {len(walks.points)} "
            f"starts between {numbers.radii[0]:g} and {numbers.radii[1]:g} from the origin. "
            "Check its support, or shift it."
        )
    quiet = 0
    for _ in range(0 if target.dim > dims.many else numbers.rounds):
        if time.monotonic() >= until:
            break
        known, most = len(peaks.points), peaks.log_masses.max()
        starts = _next_starts(rng, target, numbers.num_walks, peaks, numbers)
        more = tops_of(target, climb_from(target, *starts, numbers.round_steps, numbers), numbers, dims)
        peaks = peaks if more is None else joined(peaks, more, numbers)
        # Peaks may be fewer than before where one was found next to which others do not matter.
        news = len(peaks.points) > known or peaks.log_masses.max() > most + numbers.news
        quiet = 0 if news else quiet + 1
        # Where there are several peaks, there may be one that a single round has not come upon.
        if quiet >= (1 if known == 1 else 2):
            break
    return peaks, trail


def _next_starts(
    rng: np.random.Generator, target: Target, num_walks: int, peaks: Peaks, numbers: Search
) -> tuple[Float[np.ndarray, "n dim"], Float[np.ndarray, "n dim"]]:
    """Return places that known peaks do not explain, at most half of all, and points around the peaks.

    With each goes a first step: of a tenth of the way from a peak, or of the least width of one.
    """
    places, width = unexplained_places(rng, target, peaks, num_walks // 2, numbers)
    count = num_walks - len(places)
    factors = peaks.choleskys[which := rng.integers(len(peaks.points), size=count)]
    radius = between(rng, numbers.round_deviations, (count, 1))
    away = np.einsum("nij,nj->ni", factors, rng.standard_normal((count, target.dim)))
    step = numbers.first_step * radius * np.linalg.norm(factors, axis=2)
    near = peaks.points[which] + radius * away
    return np.concatenate([places, near]), np.concatenate([np.tile(width, (len(places), 1)), step])


def unexplained_places(
    rng: np.random.Generator, target: Target, peaks: Peaks, most: int, numbers: Search
) -> tuple[Float[np.ndarray, "_n dim"], Float[np.ndarray, " dim"]]:
    """Return at most so many places that no known peak explains, and each coordinate's least width at a peak.

    Fewer places are looked at for few of them.
    """
    each = operations(target) + DENSE * len(peaks.points) * target.dim**2
    share = min(1.0, most / numbers.most_places) * (numbers.alone if len(peaks.points) == 1 else 1.0)
    looks = int(share * min(numbers.looks, numbers.look_entries / target.dim, numbers.look_work / each))
    found = np.zeros((0, target.dim + 2))
    for first in range(0, max(looks, most), numbers.block):
        x = _places(rng, peaks, min(numbers.block, max(looks, most) - first), numbers)
        height = heights(target, x, numbers.tile)
        explained = peaks.log_densities - 0.5 * squares(x, peaks.points, peaks.choleskys)
        above = np.nan_to_num(height - np.max(explained, axis=1), nan=-np.inf, posinf=-np.inf)
        more = np.column_stack([above, height, x])[above > numbers.unexplained]
        # The least explained may all be far out in one heavy tail, the highest all at the foot of one peak.
        found = np.concatenate([found, more])
        chosen = [np.argsort(-found[:, by])[: most // 2] for by in (0, 1)]
        found = found[np.union1d(*chosen)]
    return found[:, 2:], np.min(np.linalg.norm(peaks.choleskys, axis=2), axis=0)


def _places(rng: np.random.Generator, peaks: Peaks, count: int, numbers: Search) -> np.ndarray:
    """Return places in a box around all peaks, and around each as far as peaks are apart, or are wide."""
    third, (k, dim) = -(-count // 3), peaks.points.shape
    widths = np.linalg.norm(peaks.choleskys, axis=2)
    width = widths.max(axis=0)
    low, high = peaks.points.min(axis=0) - 3.0 * width, peaks.points.max(axis=0) + 3.0 * width
    pad = numbers.padding * (high - low)
    box = rng.uniform(low - pad, high + pad, (third, dim))
    which, noise = rng.integers(k, size=(2, third)), rng.standard_normal((2, third, dim))
    spread = np.sqrt(np.var(peaks.points, axis=0) + width**2)
    apart = peaks.points[which[0]] + between(rng, numbers.apart, (third, 1)) * spread * noise[0]
    own = np.empty((third, dim))
    for i in range(k):
        mine = which[1] == i
        own[mine] = noise[1, mine] @ peaks.choleskys[i].T
    wide = peaks.points[which[1]] + between(rng, numbers.wide, (third, 1)) * own
    return np.concatenate([box, apart, wide])[:count]
