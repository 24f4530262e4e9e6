"""Hills of a density: where their tops are, how wide and how high, each of them once."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

MAX_MODES = 64
SAME_HILL = 0.5
"""Deviations within which two points are on one hill."""

UNUSUAL = 0.5
"""How far a coordinate must be from what it is at all hills that are kept, next to its spread among all."""


class Peaks(NamedTuple):
    """Distinct places where uphill walks ended, best first, with the local scale of each coordinate."""

    points: Float[np.ndarray, "k dim"]
    choleskys: Float[np.ndarray, "k dim dim"]
    log_densities: Float[np.ndarray, " k"]

    @property
    def log_masses(self) -> Float[np.ndarray, " k"]:
        """Laplace's, but for the same constant: `log q + log det scale`."""
        return self.log_densities + np.log(np.diagonal(self.choleskys, axis1=1, axis2=2)).sum(1)


def that_matter(peaks: Peaks) -> Peaks:
    """Leave out hills whose Laplace mass is next to nothing."""
    near = peaks.log_masses > peaks.log_masses.max() - 20.0 - peaks.points.shape[1]
    return Peaks(*(each[near] for each in peaks))


def joined(peaks: Peaks, more: Peaks) -> Peaks:
    """Return the hills of both, the highest first, each once."""
    both = Peaks(*(np.concatenate(each) for each in zip(peaks, more, strict=True)))
    kept = first_of_each(both.points, both.choleskys, both.log_densities)
    both = that_matter(Peaks(*(each[kept] for each in both)))
    rows = foremost(both.points, both.log_densities)
    return Peaks(*(each[rows] for each in both))


def foremost(points: np.ndarray, values: np.ndarray, most: int = MAX_MODES) -> list[int]:
    """Return at most so many points: the highest, and among these some of every kind.

    Of very many hills, as where coordinates have wells of their own, the highest may all be alike in a
    coordinate, and then nobody would know of its other well. So up to half are the highest of those in which
    a coordinate is unlike what it is at any before.
    """
    order = [int(i) for i in np.argsort(-values)]
    if len(order) <= most:
        return order
    spread = np.std(points, axis=0) + 1e-12
    kept = order[:1]
    for i in order[1:]:
        if len(kept) < most // 2 and np.any(
            np.min(np.abs(points[kept] - points[i]), axis=0) > UNUSUAL * spread
        ):
            kept.append(i)
    rest = [i for i in order if i not in set(kept)]
    return sorted([*kept, *rest[: most - len(kept)]], key=order.index)


def first_of_each(points: np.ndarray, choleskys: np.ndarray, values: np.ndarray) -> list[int]:
    """Return the highest point of each hill: those within half a deviation of it are the same."""
    kept: list[int] = []
    for i in np.argsort(-values):
        apart = [np.linalg.solve(choleskys[j], points[i] - points[j]) for j in kept]
        if all(np.linalg.norm(each) > SAME_HILL for each in apart):
            kept.append(int(i))
    return kept
