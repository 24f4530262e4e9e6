"""Coordinates along which a density repeats itself: angles, hours of the day."""

import math

import numpy as np

from pushforward.base import Target
from pushforward.probing import evaluate

USUAL = (1.0, math.pi, 2.0, math.tau, 4.0 * math.pi, 7.0, 12.0, 24.0, 180.0, 360.0)
"""Periods that are tried first."""


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
