"""Laws of a statistic for exact draws that several lines share."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import ndtr

from pushforward.host import generator


def sidak(z: float, tests: int) -> float:
    """Return the p-value of the largest `|z|` of so many normal statistics."""
    # log1p and expm1 keep the digits of p-values far below the rounding of 1 - p.
    log_right = tests * np.log1p(-min(2.0 * ndtr(-z), 1.0 - 1e-16))
    return float(np.clip(-np.expm1(log_right), 0.0, 1.0))


class Largest(NamedTuple):
    """The largest of several statistics, held against what it is under the null."""

    each: Float[np.ndarray, " k"]  # all statistics, in units in which they can be compared
    worst: int  # which of them is the largest
    p_value: float


def largest_of(found: Float[np.ndarray, " k"], copies: Float[np.ndarray, "k b"]) -> Largest:
    """Hold the largest statistic against the largest of each copy, which costs nothing for trying several.

    Each is counted in standard deviations of its copies.
    """
    spread = copies.std(axis=1) + 1e-300
    ratios, under_null = found / spread, (copies / spread[:, None]).max(axis=0)
    p_value = (1.0 + np.sum(under_null >= ratios.max())) / (1.0 + len(under_null))
    return Largest(ratios, int(np.argmax(ratios)), float(p_value))


def flip_test(key: Key[Array, ""], differences: Float[np.ndarray, "n h"], num_flips: int) -> Largest:
    """Test that the differences of every functional are symmetric about 0, by the largest |t|.

    Here `t = sum d / sqrt(sum d^2)`, 0 where nothing differs. Under the null every choice of signs is as
    likely as the one seen, for all functionals at once: so there is nothing to assume of tails or
    correlations. Where no flip reaches the value seen, Hoeffding's bound `2 h exp(-t^2 / 2)`, which holds for
    symmetric differences of any law, may say that p is smaller.
    """
    norm = np.sqrt(np.sum(differences**2, axis=0))
    scaled = np.where(norm > 0, differences / np.where(norm > 0, norm, 1.0), 0.0).astype(np.float32)
    signs = generator(key).choice(np.array([-1.0, 1.0], np.float32), (num_flips, len(differences)))
    t, largest = scaled.sum(axis=0, dtype=np.float64), np.abs(signs @ scaled).max(axis=1, initial=0.0)
    seen = np.abs(t).max(initial=0.0)
    reached = int(np.sum(largest >= seen * (1 - 1e-6)))
    p_value = (1.0 + reached) / (1.0 + num_flips)
    if reached == 0:
        p_value = min(p_value, float(2.0 * len(t) * np.exp(-0.5 * min(seen, 37.0) ** 2)))
    return Largest(t, int(np.argmax(np.abs(t))), p_value)
