"""Obvious improperness: ways to infinity along which the log density grows, stays or repeats itself."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.host import generator
from pushforward.preflight.declaring import coordinate_names
from pushforward.probing import evaluate
from pushforward.recipe.peaks import climb_from, far_starts
from pushforward.recipe.table import Search


@dataclass(frozen=True)
class Rays:
    """How properness is tried; lengths are in the target's units, slopes those of `log q` against `log r`."""

    # At which a ray is looked at.
    radii: tuple[float, ...] = (3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e6, 1e8, 1e11, 1e14)
    axes: int = 64  # that are tried; of more coordinates, so many at random
    generic: int = 8  # directions at random
    starts: int = 2  # points near the origin that rays set out from
    walks: int = 64  # uphill, to confirm a suspicion
    walk_steps: int = 300
    summits: int = 2  # of the highest places reached, that rays set out from again
    flat: float = -0.05  # slopes above this do not fall
    integrable: float = -1.0  # an integral along a line needs a slope below this


RAYS = Rays()
USUAL = (1.0, math.pi, 2.0, math.tau, 4.0 * math.pi, 7.0, 12.0, 24.0, 180.0, 360.0)  # are tried first
ANY = "a random direction"


class Escape(NamedTuple):
    """A way to infinity along which the density falls too slowly to be integrable on it."""

    words: str  # what to call its direction
    slope: float  # of `log q` against `log r`, far out; infinite where the log density itself is
    falls: bool  # whether it falls at all, from the origin or from the highest places
    axis: int = -1  # the coordinate, where the direction is an axis


def find_escapes(rng: np.random.Generator, target: Target, scores: np.ndarray) -> list[Escape]:
    """Return directions along which the log density does not fall fast enough, from every start.

    Tried are the axes both ways, a few directions at random, and those in which no score ever pointed: sums
    and differences that the density does not depend on. What is -inf far out falls; what is NaN is cut off.
    Far from its mass a proper density may rise for long, so what is suspected near the origin must also
    hold from the highest places that uphill walks reach.
    """
    ways = _directions(rng, target, scores)
    slopes = _slopes(target, ways, rng.normal(size=(RAYS.starts, target.dim)))
    found = [(way, slope) for way, slope in zip(ways, slopes, strict=True) if slope > RAYS.integrable]
    generic = [(way, slope) for way, slope in zip(ways, slopes, strict=True) if way[1] == ANY]
    # Nearly all ways are like these: there, the volume grows with the power of the dimension less one.
    steepest = min(slope for _, slope in generic)
    slow = target.dim > 1 and 0.01 - target.dim < steepest <= RAYS.flat
    if not found and not slow:
        return []
    summits, _ = summits_of(jax.random.key(rng.integers(2**31)), target)
    again = _slopes(target, [way for way, _ in found + generic], summits)
    escapes = [
        Escape(words, slope, falls=min(slope, other) <= RAYS.flat, axis=_axis(way))
        for ((way, words), slope), other in zip(found, again, strict=False)
        if other > RAYS.integrable
    ]
    if slow and min(again[len(found) :]) > 0.01 - target.dim:
        power = -float(np.median(again[len(found) :]))
        words = f"nearly every direction: like 1/r^{power:.2f}, and 1/r^{target.dim} would be too slow"
        escapes.insert(0, Escape(words, -power, falls=False))
    return escapes


def _axis(way: np.ndarray) -> int:
    return int(np.argmax(np.abs(way))) if np.count_nonzero(way) == 1 else -1


def _slopes(target: Target, ways: list[tuple[np.ndarray, str]], starts: np.ndarray) -> list[float]:
    """Return the slope along each way, the steepest of those from all starts."""
    directions = np.stack([direction for direction, _ in ways])
    points = starts[:, None, None] + np.array(RAYS.radii)[:, None] * directions[:, None]
    values = evaluate(target, points.reshape(-1, target.dim))[0]
    values = values.reshape(len(starts), len(ways), len(RAYS.radii)).astype(np.float64)
    return [min(_slope(line) for line in values[:, number]) for number in range(len(ways))]


def summits_of(
    key: Key[Array, ""], target: Target
) -> tuple[Float[np.ndarray, "n dim"], Float[np.ndarray, " n"]]:
    """Return the highest places found; those of an improper density are as far out as the walks could go."""
    numbers = Search(num_walks=RAYS.walks)
    starts = far_starts(generator(key), RAYS.walks, target.dim, numbers)
    x, value, _ = climb_from(target, *starts, RAYS.walk_steps, numbers)
    order = np.argsort(-np.where(np.isfinite(x).all(axis=1), value, -np.inf))[: RAYS.summits]
    return x[order], value[order]


def _slope(values: np.ndarray) -> float:
    """Return the steeper of the last two slopes along a ray; minus infinity where that cannot be said."""
    broken = np.isnan(values) | np.isposinf(values)
    usable = int(np.argmax(broken)) if broken.any() else len(values)
    if usable < len(values) and np.isposinf(values[usable]):
        # What fell all the way and is infinite then has overflowed: 1 / exp(-100) inside a prior, say.
        fell = usable >= 2 and values[usable - 1] < values[usable - 2]
        if not fell:
            return np.inf
    values, radii = values[:usable], np.array(RAYS.radii[:usable])
    # Three points beyond the region where the mass may lie; nearer to it, growth is no sin.
    if usable < 4 or not np.isfinite(values).all():
        return -np.inf
    return float(np.min(np.diff(values[-3:]) / np.diff(np.log(radii[-3:]))))


def _directions(rng: np.random.Generator, target: Target, scores: np.ndarray) -> list[tuple[np.ndarray, str]]:
    dim = target.dim
    names = coordinate_names(target)
    axes = np.arange(dim) if dim <= RAYS.axes else np.sort(rng.choice(dim, RAYS.axes, replace=False))
    ways = []
    for axis in axes:
        unit = np.eye(1, dim, int(axis))[0]
        ways += [(unit, f"{names[axis]} -> +infinity"), (-unit, f"{names[axis]} -> -infinity")]
    for _ in range(RAYS.generic):
        direction = rng.normal(size=dim)
        ways.append((direction / np.linalg.norm(direction), ANY))
    for direction in _unseen(scores):
        large = np.argsort(-np.abs(direction))[:4]
        words = " ".join(f"{direction[i]:+.2f} {names[i]}" for i in large if abs(direction[i]) > 0.05)
        ways += [(direction, words), (-direction, f"-({words})")]
    return ways


def _unseen(scores: np.ndarray) -> list[np.ndarray]:
    """Return directions to which every score is orthogonal, up to rounding, and that are no axis."""
    rows = scores[np.isfinite(scores).all(axis=1)].astype(np.float64)
    dim = scores.shape[1]
    if len(rows) < 2 * dim or dim < 2:
        return []
    scale = np.sqrt(np.mean(rows**2, axis=0)) + 1e-300
    rows = rows / scale
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    _, sizes, vectors = np.linalg.svd(rows, full_matrices=False)
    flat = vectors[sizes < 1e-5 * sizes[0]] / scale
    return [v / np.linalg.norm(v) for v in flat[:4]]


def period(target: Target, base: np.ndarray, axis: int, *, looks: int = 96) -> float | None:
    """Return the period of the log density along an axis, or `None` if it has none that is seen."""
    usual = next((each for each in USUAL if _misfit(target, base, axis, each, looks) < 1e-3), None)
    if usual is not None:
        return usual
    # By the first shift after which a long line comes to lie on itself.
    line = np.linspace(-32.0, 32.0, 8 * looks)
    values = _along(target, base, axis, line)
    if not np.isfinite(values).all() or np.ptp(values) < 1e-2:
        return None
    apart = np.array([np.abs(values[k:] - values[:-k]).max() for k in range(1, 4 * looks)]) / np.ptp(values)
    low = np.flatnonzero((apart[1:-1] < apart[:-2]) & (apart[1:-1] <= apart[2:]) & (apart[1:-1] < 0.3)) + 1
    if not len(low):
        return None
    # The shift is known to a step of the line; golden sections find the rest.
    step = line[1] - line[0]
    low_end, high_end = low[0] * step, (low[0] + 2) * step
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(30):
        width = ratio * (high_end - low_end)
        one, two = high_end - width, low_end + width
        if _misfit(target, base, axis, one, looks) < _misfit(target, base, axis, two, looks):
            high_end = two
        else:
            low_end = one
    found = 0.5 * (low_end + high_end)
    return float(f"{found:.6g}") if _misfit(target, base, axis, found, looks) < 1e-2 else None


def _along(target: Target, base: np.ndarray, axis: int, places: np.ndarray) -> np.ndarray:
    points = np.tile(base, (len(places), 1))
    points[:, axis] = places
    return evaluate(target, points)[0].astype(np.float64)


def _misfit(target: Target, base: np.ndarray, axis: int, shift: float, looks: int) -> float:
    """Return by how much a period of the density differs from the next, in units of its own range."""
    places = np.linspace(-0.5, 0.5, looks // 2) * shift
    one, two = np.split(_along(target, base, axis, np.concatenate([places, places + shift])), 2)
    if not np.isfinite(one).all() or not np.isfinite(two).all() or np.ptp(one) < 1e-2:
        return np.inf
    return float(np.abs(two - one).max() / np.ptp(one))
