"""Obvious improperness: ways to infinity along which the log density grows, or does not fall."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.probing import evaluate
from pushforward.recipe.peaks import climb_from, far_starts
from pushforward.recipe.table import Search

RADII = np.array([3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e6, 1e8])
MAX_AXES, NUM_GENERIC, NUM_STARTS = 64, 8, 2
WALKS, SUMMITS, WALK_STEPS = 64, 2, 300
"""Uphill walks that are to confirm a suspicion, how many of the highest count, and their length."""

NOT_FALLING = -0.05
"""Slopes of `log q` against `log r` above this do not fall. An integral along a line needs one below -1."""


class Escape(NamedTuple):
    """A way to infinity: its direction, what to call it, and how the log density goes along it."""

    direction: np.ndarray
    words: str
    slope: float
    """Of `log q` against `log r`, far out; infinite where the log density itself is."""


def find_escapes(
    rng: np.random.Generator, target: Target, scores: np.ndarray, *, slowest: float = NOT_FALLING
) -> list[Escape]:
    """Return directions along which the log density falls no faster than `slowest`, from every start.

    Tried are the axes both ways, a few directions at random, and those in which no score ever pointed: sums
    and differences that the density does not depend on. What is -inf far out falls; what is NaN is cut off.
    Far from its mass a proper density may rise for long, so what is suspected near the origin must also
    hold from the highest places that uphill walks reach.
    """
    found = _along(
        target, _directions(rng, target, scores), rng.normal(size=(NUM_STARTS, target.dim)), slowest
    )
    if not found:
        return []
    summits = _summits(jax.random.key(rng.integers(2**31)), target)
    still = _along(target, [(escape.direction, escape.words) for escape in found], summits, slowest)
    confirmed = {escape.words for escape in still}
    return [escape for escape in found if escape.words in confirmed]


def _along(
    target: Target, ways: list[tuple[np.ndarray, str]], starts: np.ndarray, slowest: float
) -> list[Escape]:
    """Return the ways that fall no faster than `slowest` from every start."""
    directions = np.stack([direction for direction, _ in ways])
    points = starts[:, None, None] + RADII[:, None] * directions[:, None]
    values = evaluate(target, points.reshape(-1, target.dim))[0]
    values = values.reshape(len(starts), len(ways), len(RADII)).astype(np.float64)
    slopes = [min(_slope(line) for line in values[:, number]) for number in range(len(ways))]
    return [Escape(*way, slope) for way, slope in zip(ways, slopes, strict=True) if slope > slowest]


def _summits(key: Key[Array, ""], target: Target) -> Float[np.ndarray, "n dim"]:
    """Return the highest places found; those of an improper density are as far out as the walks could go."""
    numbers = Search()
    x, value, _ = (
        np.asarray(each)
        for each in climb_from(target, *far_starts(key, WALKS, target.dim, numbers), WALK_STEPS, numbers)
    )
    return x[np.argsort(-np.where(np.isfinite(x).all(axis=1), value, -np.inf))[:SUMMITS]]


def _slope(values: np.ndarray) -> float:
    """Return the steeper of the last two slopes along a ray; minus infinity where that cannot be said."""
    broken = np.isnan(values) | np.isposinf(values)
    usable = int(np.argmax(broken)) if broken.any() else len(values)
    if usable < len(values) and np.isposinf(values[usable]):
        # What fell all the way and is infinite then has overflowed: 1 / exp(-100) inside a prior, say.
        fell = usable >= 2 and values[usable - 1] < values[usable - 2]
        if not fell:
            return np.inf
    values, radii = values[:usable], RADII[:usable]
    # Three points beyond the region where the mass may lie; nearer to it, growth is no sin.
    if usable < 4 or not np.isfinite(values).all():
        return -np.inf
    return float(np.min(np.diff(values[-3:]) / np.diff(np.log(radii[-3:]))))


def _directions(rng: np.random.Generator, target: Target, scores: np.ndarray) -> list[tuple[np.ndarray, str]]:
    dim = target.dim
    names = target.parameters.coordinate_names() if target.parameters else [f"x[{i}]" for i in range(dim)]
    axes = np.arange(dim) if dim <= MAX_AXES else np.sort(rng.choice(dim, MAX_AXES, replace=False))
    ways = []
    for axis in axes:
        for sign, word in ((1.0, "+"), (-1.0, "-")):
            ways.append((sign * np.eye(1, dim, int(axis))[0], f"{names[axis]} -> {word}infinity"))
    for _ in range(NUM_GENERIC):
        direction = rng.normal(size=dim)
        ways.append((direction / np.linalg.norm(direction), "a random direction"))
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
