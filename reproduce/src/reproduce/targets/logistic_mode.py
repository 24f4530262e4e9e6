"""The mode of a logistic posterior and its curvature there: Newton's method in double precision."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit, log_expit

MAX_STEPS = 100
DONE = 1e-12
"""Newton decrement, in nats, below which nothing is left to gain."""


class Peak(NamedTuple):
    """A posterior's mode, with what the data say there; all in double precision."""

    mode: Float[np.ndarray, " dim"]
    precision: Float[np.ndarray, "dim dim"]
    """Minus the Hessian of the log density: the inverse covariance of the Laplace approximation."""
    margins: Float[np.ndarray, " rows"]
    slope: Float[np.ndarray, " weights"]
    """The gradient of the log likelihood alone."""
    curvature: Float[np.ndarray, "weights weights"]
    """Minus the Hessian of the log likelihood alone."""

    @property
    def origin(self) -> Float[np.ndarray, " weights"]:
        """The weights of the mode."""
        return self.mode[:-1]

    @property
    def covariance(self) -> Float[np.ndarray, "dim dim"]:
        """The covariance of the Laplace approximation."""
        return np.linalg.inv(self.precision)


class _Point(NamedTuple):
    value: float
    gradient: np.ndarray
    peak: Peak


def find_peak(rows: Float[np.ndarray, "chunks size weights"], shape: float, rate: float) -> Peak:
    """Climb to the mode of `(w, t)`.

    While the weights are far off, `alpha` is held at its best for them, which is known in closed form; the
    joint Newton steps of the end converge quadratically.
    """
    dim = rows.shape[2] + 1
    point, decrement = _evaluate(rows, np.zeros(dim), shape, rate), np.inf
    for _ in range(MAX_STEPS):
        step = _direction(point)
        decrement = float(point.gradient @ step)
        if decrement < DONE:
            return point.peak
        point = _climb(rows, point, step, shape, rate, joint=decrement < 1.0)
    raise ValueError(
        f"no mode was found in {MAX_STEPS} Newton steps; the last one would still gain {decrement:.2g} nats. "
        "Scale the features to comparable ranges, or take a narrower prior (a larger `shape`)."
    )


def find_centre(rows: Float[np.ndarray, "chunks size weights"], shape: float, rate: float) -> Peak:
    """Find where the posterior's mass is, which need not be near its mode.

    Few data leave the joint mode at weights of zero under a prior that is narrow without reason: a spike
    of density with no mass. So `alpha` is put where it is best on average over the weights (MacKay's evidence
    procedure, by expectation-maximisation), and the weights at their mode given it:

        alpha = (d/2 + shape) / (1/2 |w|^2 + 1/2 tr C + rate),   C the covariance of the weights given alpha
    """
    size = rows.shape[2]
    point = _evaluate(rows, np.zeros(size + 1), shape, rate)
    for _ in range(MAX_STEPS):
        covariance = np.linalg.inv(point.peak.precision[:-1, :-1])
        step = np.append(covariance @ point.gradient[:-1], 0.0)
        decrement = float(point.gradient @ step)
        point = _climb(rows, point, step, shape, rate, joint=True)
        square = point.peak.origin @ point.peak.origin + np.trace(covariance)
        t = np.log((0.5 * size + shape) / (0.5 * square + rate))
        moved = abs(t - point.peak.mode[-1])
        point = _evaluate(rows, np.append(point.peak.origin, t), shape, rate)
        if decrement < 1e-8 and moved < 1e-4:
            break
    precision = point.peak.precision.copy()
    precision[-1, -1] = 0.5 * size + shape
    if np.linalg.eigvalsh(precision)[0] <= 0:
        precision[-1, :-1] = precision[:-1, -1] = 0.0
    return point.peak._replace(precision=precision)


def _direction(point: _Point) -> np.ndarray:
    """Return the Newton step, uphill where the posterior is not concave as well."""
    values, vectors = np.linalg.eigh(point.peak.precision)
    floor = 1e-12 * np.abs(values).max()
    return vectors @ ((vectors.T @ point.gradient) / np.maximum(np.abs(values), floor))


def _climb(
    rows: np.ndarray, point: _Point, step: np.ndarray, shape: float, rate: float, *, joint: bool
) -> _Point:
    """Take the longest step that does not lead down."""
    length, mode = 1.0, point.peak.mode
    while True:
        moved = mode + length * step
        if not joint:
            weights = moved[:-1]
            moved[-1] = np.log((0.5 * weights.size + shape) / (0.5 * weights @ weights + rate))
        new = _evaluate(rows, moved, shape, rate)
        # Rounding of the value must not hold up the last step.
        if new.value >= point.value - 1e-9 * abs(point.value) or length < 1e-6:
            return new
        length /= 2


def _evaluate(rows: np.ndarray, x: np.ndarray, shape: float, rate: float) -> _Point:
    """Return value, gradient and Hessian, the rows taken in double precision a chunk at a time."""
    weights, t = x[:-1], x[-1]
    size, alpha, square = weights.size, np.exp(t), weights @ weights
    value = (0.5 * size + shape) * t - alpha * (0.5 * square + rate)
    slope, curvature, margins = np.zeros(size), np.zeros((size, size)), np.empty(rows.shape[:2])
    for i, chunk in enumerate(rows):
        some = np.asarray(chunk, np.float64)
        margins[i] = some @ weights
        missing = expit(-margins[i])
        # A row of zeros has value log(1/2), slope and curvature zero.
        value += (log_expit(margins[i]) + np.log(2.0)).sum()
        slope += missing @ some
        curvature += (some * (missing * (1 - missing))[:, None]).T @ some
    precision = np.empty((size + 1, size + 1))
    precision[:-1, :-1] = curvature + alpha * np.eye(size)
    precision[-1, :-1] = precision[:-1, -1] = alpha * weights
    precision[-1, -1] = alpha * (0.5 * square + rate)
    gradient = np.append(slope - alpha * weights, 0.5 * size + shape - alpha * (0.5 * square + rate))
    return _Point(float(value), gradient, Peak(x, precision, margins.reshape(-1), slope, curvature))
