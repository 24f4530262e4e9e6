"""A target asked at many points by one compiled program, and its gradient held against differences of it."""

import time
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from pushforward.base import Target

ROWS = 96
"""Points in one call, always: whatever is asked, one program is compiled."""

MIN_CONCLUSIVE = 8


@eqx.filter_jit
def _evaluate(target: Target, x: Float[Array, "n dim"]) -> tuple[Float[Array, " n"], Float[Array, "n dim"]]:
    return jax.vmap(jax.value_and_grad(target.log_density))(x)


def evaluate(target: Target, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log densities and scores at points `(n, dim)`."""
    dtype, found = jax.dtypes.canonicalize_dtype(float), []
    for first in range(0, len(points), ROWS):
        block = np.resize(points[first : first + ROWS].astype(dtype), (ROWS, points.shape[1]))
        found.append(_evaluate(target, jax.device_put(block)))
    values, scores = (np.concatenate(parts)[: len(points)] for parts in zip(*found, strict=True))
    return values, scores


def seconds_a_look(target: Target, points: np.ndarray) -> float:
    """Return the seconds that value and gradient take at one point of `ROWS`, compiled."""
    evaluate(target, points[:ROWS])
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        evaluate(target, points[:ROWS])
        seconds.append(time.perf_counter() - started)
    return min(seconds) / ROWS


class GradientCheck(NamedTuple):
    """At how many points differences could tell, and at how many the gradient disagreed."""

    conclusive: int
    wrong: int

    @property
    def share(self) -> float:
        """The share of points at which the gradient is wrong, zero where too few could tell."""
        return self.wrong / self.conclusive if self.conclusive >= MIN_CONCLUSIVE else 0.0


def check_gradient(
    target: Target, points: np.ndarray, scores: np.ndarray, scales: np.ndarray, directions: np.ndarray
) -> GradientCheck:
    """Compare `score . v` with central differences along `v`, at two steps.

    In single precision a difference is mostly rounding where the log density is large and mostly curvature
    where the step is. Both are estimated, from the size of the values and from the second step; points where
    they would hide an error of a quarter say nothing.
    """
    eps = float(np.finfo(jax.dtypes.canonicalize_dtype(float)).eps)
    step = eps ** (1 / 3) * scales
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    far = [points + k * step[:, None] * unit for k in (1, -1, 2, -2)]
    up, down, up2, down2 = (evaluate(target, p)[0].astype(np.float64) for p in far)
    with np.errstate(all="ignore"):
        near, wide = (up - down) / (2 * step), (up2 - down2) / (4 * step)
        slope = np.sum(scores.astype(np.float64) * unit, axis=1)
        rounding = 4 * eps * np.maximum(np.abs(up), np.abs(down)) / step
        tolerance = 3 * rounding + 2 * np.abs(near - wide) + 0.02 * np.abs(slope)
        size = np.maximum(np.abs(near), np.abs(slope))
        conclusive = np.isfinite(near) & np.isfinite(wide) & np.isfinite(slope) & (tolerance < 0.25 * size)
        wrong = conclusive & (np.abs(slope - near) > tolerance)
    return GradientCheck(int(conclusive.sum()), int(wrong.sum()))
