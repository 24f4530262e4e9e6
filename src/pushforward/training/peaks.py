"""Hills of a density: where their tops are, how wide and how high, each of them once."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

MAX_MODES = 64
SAME_HILL = 0.5
"""Deviations within which two points are on one hill."""


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
    kept = first_of_each(both.points, both.choleskys, both.log_densities)[:MAX_MODES]
    return that_matter(Peaks(*(each[kept] for each in both)))


def first_of_each(points: np.ndarray, choleskys: np.ndarray, values: np.ndarray) -> list[int]:
    """Return the highest point of each hill: those within half a deviation of it are the same."""
    kept: list[int] = []
    for i in np.argsort(-values):
        apart = [np.linalg.solve(choleskys[j], points[i] - points[j]) for j in kept]
        if all(np.linalg.norm(each) > SAME_HILL for each in apart):
            kept.append(int(i))
    return kept
