"""A target asked at many points by one compiled program, and its gradient held against differences of it."""

import time
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from pushforward.base import Target

ROWS = 96  # points in one call, always: whatever is asked, one program is compiled

MIN_CONCLUSIVE = 8


@eqx.filter_jit
def _evaluate(target: Target, x: Float[Array, "n dim"]) -> tuple[Float[Array, " n"], Float[Array, "n dim"]]:
    return jax.vmap(jax.value_and_grad(target.log_density))(x)


def evaluate(target: Target, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log densities and scores at points `(n, dim)`."""
    dtype, found = jax.dtypes.canonicalize_dtype(float), []
    for first in range(0, len(points), ROWS):
        with np.errstate(over="ignore"):
            rows = points[first : first + ROWS].astype(dtype)
        block = np.resize(rows, (ROWS, points.shape[1]))
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
    off: float = 0.0  # the share by which the gradient is off everywhere, where that is small and can be told
    where: str = ""  # in which coordinate, if not in all

    @property
    def share(self) -> float:
        """The share of points at which the gradient is wrong, zero where too few could tell."""
        return self.wrong / self.conclusive if self.conclusive >= MIN_CONCLUSIVE else 0.0


def check_gradient(
    rng: np.random.Generator, target: Target, points: np.ndarray, scores: np.ndarray, scales: np.ndarray
) -> GradientCheck:
    """Compare slopes with central differences at two steps: along each axis in turn, or in any direction.

    In single precision a difference is mostly rounding where the log density is large and mostly curvature
    where the step is. Both are estimated, from the size of the values and from the second step; points where
    they would hide an error of a quarter say nothing. Points where they would hide one of half a percent say
    nothing of a gradient that is off by a constant factor.
    """
    eps = float(np.finfo(jax.dtypes.canonicalize_dtype(float)).eps)
    dim, step = points.shape[1], eps ** (1 / 4) * scales
    axes = rng.permutation(len(points)) % dim
    few = dim <= len(points) // MIN_CONCLUSIVE * 2
    unit = np.eye(dim)[axes] if few else rng.normal(size=points.shape)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    far = [points + k * step[:, None] * unit for k in (1, -1, 2, -2)]
    up, down, up2, down2 = (evaluate(target, p)[0].astype(np.float64) for p in far)
    with np.errstate(all="ignore"):
        near, wide = (up - down) / (2 * step), (up2 - down2) / (4 * step)
        slope = np.sum(scores.astype(np.float64) * unit, axis=1)
        noise = 12 * eps * np.maximum(np.abs(up), np.abs(down)) / step + 2 * np.abs(near - wide)
        size = np.maximum(np.abs(near), np.abs(slope))
        usable = np.isfinite(near) & np.isfinite(wide) & np.isfinite(slope)
        tolerance = noise + 0.02 * np.abs(slope)
        conclusive = usable & (tolerance < 0.25 * size)
        wrong = conclusive & (np.abs(slope - near) > tolerance)
        sure = usable & (noise < 0.003 * size)
        # By Richardson's extrapolation, which takes out most of the curvature.
        ratio = slope / ((4.0 * near - wide) / 3.0) - 1.0
    off, where = _factor(ratio[sure]), ""
    for axis in range(dim if few and not off else 0):
        off = off or _factor(ratio[sure & (axes == axis)])
        where = where or (f"in coordinate {axis}" if off else "")
    return GradientCheck(int(conclusive.sum()), int(wrong.sum()), off, where)


def _factor(ratios: np.ndarray) -> float:
    """Return by how much slopes are off, if nearly all of them are by half a percent or more to one side."""
    if len(ratios) < MIN_CONCLUSIVE // 2 or np.mean(np.abs(ratios) > 0.005) < 0.9:
        return 0.0
    return float(np.median(ratios)) if np.abs(np.mean(np.sign(ratios))) > 0.9 else 0.0
