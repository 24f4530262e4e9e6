"""Draws that no density could have made: not finite, outside the support, or all alike in a coordinate."""

import jax
import numpy as np
from jaxtyping import Bool, Float

from pushforward.base import Target
from pushforward.trust.coordinates import log_densities
from pushforward.trust.line import Line


def usable_rows(draws: Float[np.ndarray, "n dim"], target: Target) -> Bool[np.ndarray, " n"]:
    """Return which rows are finite and have a finite log density."""
    finite = np.all(np.isfinite(draws), axis=1)
    safe = jax.device_put(np.where(np.expand_dims(finite, 1), draws, 0.0).astype(draws.dtype))
    return finite & np.isfinite(np.asarray(log_densities(target, safe)))


def support_line(draws: Float[np.ndarray, "n dim"], usable: Bool[np.ndarray, " n"]) -> Line:
    """Return the line on draws that must not be there."""
    n, infinite = len(draws), int(np.sum(~np.isfinite(draws).all(axis=1)))
    outside = int(np.sum(~usable)) - infinite
    constant = _constant(draws[usable])
    found = f"{infinite:,} of {n:,} draws are not finite, {outside:,} have no density."
    if len(constant):
        found += f" Coordinate(s) {constant[:5].tolist()} never change."
    return Line(
        name="support",
        title="Finite, and inside the support",
        statistic=float(np.mean(~usable)),
        measure="share of impossible draws",
        null="none are allowed",
        breached=bool((~usable).any() or len(constant)),
        grave=True,
        found=found,
        advice="The sampler has diverged, or leaves the support: transform limits to the real line.",
        details={"not_finite": infinite, "no_density": outside, "constant": constant.tolist()},
    )


def _constant(rows: np.ndarray) -> np.ndarray:
    if not len(rows):
        return np.arange(rows.shape[1])
    # A robust width of zero: more than half of the draws share one value.
    low, high = np.quantile(rows, [0.1587, 0.8413], axis=0)
    return np.flatnonzero(high <= low)


def hopeless(line: Line) -> bool:
    """Whether so much is wrong that nothing else can be looked at."""
    return bool(line.details["constant"]) or line.statistic > 0.05
