"""Where a log density ends: bounds of coordinates, slanted and curved edges, gaps."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pushforward.base import Target
from pushforward.probing import evaluate
from pushforward.recipe.peaks import between


@dataclass(frozen=True)
class Probing:
    """How a support is looked for."""

    bases: int = 8  # places from which edges are looked for
    axes: int = 48  # coordinates that are looked along
    reach: tuple[float, float] = (1e-3, 1e6)  # of the looks along an axis
    levels: int = 28  # looks along each half of an axis
    ways: int = 48  # edges looked for on the way to trial points without a density
    halvings: int = 40
    # Nats are counted from the highest value seen, half a nat for each coordinate left out.
    near: tuple[float, float] = (0.1, 2.5)  # of the way from edge to base; nats it may be lower there
    sharp: tuple[float, float] = (1e-3, 8.0)  # as near and as high: normal tails would be cut off
    base: float = 2.0  # nats that a base may be lower
    high: float = 12.0  # nats that the far side of a gap may be lower
    overflow: float = 200.0  # nats: what falls as far before it ends has overflowed
    alike: float = 2e-3  # of the way to an edge, within which places of edges are one place


PROBING = Probing()


class Edges(NamedTuple):
    """Ways on which the density stops being finite; `along` is an axis and its side, or (-1, 0)."""

    inside: Float[np.ndarray, "n dim"]
    outside: Float[np.ndarray, "n dim"]
    along: np.ndarray


@dataclass(frozen=True)
class Support:
    """What is known of a support that is not all of R^dim."""

    low: Float[np.ndarray, " dim"]  # bounds of coordinates, infinite where there are none
    high: Float[np.ndarray, " dim"]
    gaps: tuple[tuple[int, float, float], ...]
    """Coordinates with the ends of a gap, beyond which the density goes on."""
    holed: bool  # whether the density begins again beyond an edge somewhere
    others: Float[np.ndarray, "n dim"]  # places of edges that neither bounds nor gaps explain
    inside: Float[np.ndarray, "n dim"]  # places inside, one for each of these
    sharp: bool  # whether the density is high up to its edges

    @property
    def bounded(self) -> bool:
        """Whether there are bounds of coordinates."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())


def inner_points(rng: np.random.Generator, dim: int) -> Float[np.ndarray, "n dim"]:
    """Return points of usual supports, for a density that is finite nowhere around the origin."""
    x = np.repeat((0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), 16)[:, None] * rng.normal(size=(96, dim))
    line = np.geomspace(1e-3, 1e3, 48)[:, None] * np.ones(dim)
    share = rng.dirichlet(np.ones(dim + 1), 96)[:, :dim]
    return np.concatenate([np.abs(x), -np.abs(x), np.sort(x, axis=1), share, line, -line])


def find_support(
    rng: np.random.Generator, target: Target, x: Float[np.ndarray, "n dim"], values: Float[np.ndarray, " n"]
) -> Support | None:
    """Return what bounds the density, or `None` where nothing does.

    Looked at are both halves of every axis through places where the density is high, and the ways from there
    to trial points without a density. Halving finds the edge on each. Edges at which the density is low are
    left out: there it has overflowed, or its mass is elsewhere.
    """
    finite, axes = np.isfinite(values), np.arange(target.dim)
    if target.dim > PROBING.axes:
        axes = np.sort(rng.choice(target.dim, PROBING.axes, replace=False))
    best = x[finite][np.argmax(values[finite])][None]
    edges, _ = _along_axes(target, best, axes)
    if finite.all() and not len(edges.inside):
        return None
    bases = _bases(rng, target, x[finite], values[finite])
    edges, gaps = _along_axes(target, bases, axes)
    outside = x[~finite][: PROBING.ways]
    start = bases[rng.integers(len(bases), size=len(outside))]
    ways = Edges(start, outside, np.tile([-1, 0], (len(outside), 1)))
    edges = Edges(*(np.concatenate(both) for both in zip(edges, ways, strict=True)))
    places, top = _halved(target, edges), _heights(target, edges.inside).max() - 0.5 * target.dim
    near, sharp = (
        _heights(target, places + share * (edges.inside - places)) > top - lower
        for share, lower in (PROBING.near, PROBING.sharp)
    )
    if not near.any():
        return None
    return _support(bases, edges, places, gaps, near, sharp=bool(sharp[near].mean() > 0.5))


def _heights(target: Target, x: np.ndarray) -> np.ndarray:
    """Return log densities, minus infinity where they are not finite."""
    if not len(x):
        return np.zeros(0)
    values = evaluate(target, x)[0].astype(np.float64)
    return np.where(np.isfinite(values), values, -np.inf)


def _bases(rng: np.random.Generator, target: Target, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return places where the density is high: some of those given, others around the highest."""
    best, scale = x[np.argmax(values)], between(rng, (1e-3, 1.0), (96, 1))
    around = best + scale * (1.0 + np.abs(best)) * rng.normal(size=(96, x.shape[1]))
    x, values = np.concatenate([x, around]), np.concatenate([values, _heights(target, around)])
    high = np.flatnonzero(values > values.max() - PROBING.base - 0.5 * x.shape[1])
    return x[rng.permutation(high)[: PROBING.bases]]


def _along_axes(target: Target, bases: np.ndarray, axes: np.ndarray) -> tuple[Edges, set[tuple[int, int]]]:
    """Return the ends of the density along axes, and the halves of axes on which it begins again."""
    steps = np.geomspace(*PROBING.reach, PROBING.levels)
    lines = [(base, axis, side) for base in bases for axis in axes for side in (-1, 1)]
    x = np.repeat([base for base, _, _ in lines], len(steps) + 1, axis=0).reshape(
        len(lines), -1, bases.shape[1]
    )
    for line, (base, axis, side) in zip(x, lines, strict=True):
        line[1:, axis] += side * steps * (1.0 + abs(base[axis]))
    height = _heights(target, x.reshape(-1, bases.shape[1])).reshape(len(lines), -1)
    least, ends, gaps = height.max() - PROBING.overflow, [], set()
    for row, (_, axis, side) in enumerate(lines):
        out = np.isinf(height[row])
        first = int(np.argmax(out))
        if not out.any() or height[row, max(first - 1, 0)] < least:
            continue
        ends.append((x[row, 0], x[row, first], (axis, side)))
        if again := np.flatnonzero(height[row, first:] > height.max() - PROBING.high).tolist():
            gaps.add((int(axis), side))
            ends.append((x[row, first + again[0]], x[row, first + again[0] - 1], (axis, -side)))
    if not ends:
        return Edges(bases[:0], bases[:0], np.zeros((0, 2), int)), gaps
    return Edges(*map(np.array, zip(*ends, strict=True))), gaps


def _halved(target: Target, edges: Edges) -> np.ndarray:
    """Return the last places on each way at which the density is finite."""
    inside, outside = edges.inside, edges.outside
    for _ in range(PROBING.halvings):
        middle = 0.5 * (inside + outside)
        good = np.isfinite(_heights(target, middle))[:, None]
        inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
    return inside


def _support(
    bases: np.ndarray,
    edges: Edges,
    places: np.ndarray,
    gaps: set[tuple[int, int]],
    near: np.ndarray,
    *,
    sharp: bool,
) -> Support:
    """Tell bounds of coordinates from other edges: they are at one place from wherever one looks."""
    dim = bases.shape[1]
    low, high, holes = np.full(dim, -np.inf), np.full(dim, np.inf), []
    explained = np.zeros(len(places), bool)
    found: dict[tuple[int, int], float] = {}
    for axis, side in {(int(a), int(s)) for a, s in edges.along if a >= 0}:
        mine = np.flatnonzero((edges.along == (axis, side)).all(axis=1))
        at = places[mine, axis]
        way = float(np.median(np.abs(at[:, None] - bases[None, :, axis])))
        if len(mine) < len(bases) / 2 or np.ptp(at) > PROBING.alike * (way + 1e-3 * np.abs(at).max()):
            continue
        if near[mine].any():
            found[axis, side] = _round(float(np.median(at)), way)
        explained |= np.abs(places[:, axis] - at[0]) <= 2.0 * PROBING.alike * way
    for (axis, side), place in found.items():
        if (axis, side) not in gaps and (axis, -side) not in gaps:
            (low if side < 0 else high)[axis] = place
    for axis in {axis for axis, _ in gaps}:
        # A gap begins where the density ends upwards, and ends where it ends downwards.
        if (axis, 1) in found and (axis, -1) in found:
            holes.append((axis, found[axis, 1], found[axis, -1]))
    others = near & ~explained
    return Support(low, high, tuple(holes), bool(gaps), places[others], edges.inside[others], sharp)


def _round(place: float, way: float) -> float:
    """Return the shortest number within what halving in single precision can tell, or a multiple of pi."""
    tolerance = 1e-5 * way + 1e-6 * abs(place)
    if abs(place) <= tolerance:
        return 0.0
    shorter = [float(f"{place:.{digits}g}") for digits in range(1, 9)]
    near = [*shorter[:4], *(math.copysign(k * math.pi, place) for k in (0.5, 1.0, 2.0)), *shorter[4:], place]
    return next(number for number in near if abs(number - place) <= tolerance)
