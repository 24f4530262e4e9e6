"""Every constraint by name; those of single numbers are written here."""

import numpy as np

from pushforward.parameters.kind import Kind, Module, Values, sigmoid, softplus
from pushforward.parameters.matrices import (
    CORRELATION_CHOLESKY,
    CORRELATION_MATRIX,
    LOWER_CHOLESKY,
    PACKED_CHOLESKY,
    POSITIVE_DEFINITE,
)
from pushforward.parameters.vectors import L1_BALL, ORDERED, POSITIVE_ORDERED, SIMPLEX, ZERO_SUM

# Numbers each of which has two limits, one, or none: a limit that is not finite is none.


def _sides(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return finite limits, and which of them count."""
    is_low, is_high = np.isfinite(low), np.isfinite(high)
    return np.where(is_low, low, 0), np.where(is_high, high, 0), is_low, is_high


def _into_box(xp: Module, u: Values, low: np.ndarray, high: np.ndarray) -> Values:
    low, high, is_low, is_high = _sides(low, high)
    # Twice `where`, so that an overflow elsewhere cannot spoil the gradient.
    away = xp.exp(xp.where(is_low ^ is_high, u, 0.0))
    one_sided = xp.where(is_low, low + away, xp.where(is_high, high - away, u))
    return xp.where(is_low & is_high, low + (high - low) * sigmoid(xp, u), one_sided)


def _out_of_box(xp: Module, y: Values, low: np.ndarray, high: np.ndarray) -> Values:
    low, high, is_low, is_high = _sides(low, high)
    below = xp.log(xp.where(is_low, y - low, 1.0))
    above = xp.log(xp.where(is_high, high - y, 1.0))
    return xp.where(is_low, below - above, above) + xp.where(is_low | is_high, 0.0, y)


def _box_log_det(xp: Module, u: Values, low: np.ndarray, high: np.ndarray) -> Values:
    low, high, is_low, is_high = _sides(low, high)
    width = np.log(np.where(is_low & is_high, high - low, 1.0))
    one_sided = xp.where(is_low | is_high, u, 0.0)
    return xp.where(is_low & is_high, width - softplus(xp, u) - softplus(xp, -u), one_sided)


KINDS: dict[str, Kind] = {
    "real": Kind(lambda xp, u: u, lambda xp, y: y, lambda xp, u: xp.zeros_like(u)),
    "positive": Kind(lambda xp, u: xp.exp(u), lambda xp, y: xp.log(y), lambda xp, u: u),
    "softplus_positive": Kind(
        softplus, lambda xp, y: y + xp.log(-xp.expm1(-y)), lambda xp, u: -softplus(xp, -u)
    ),
    "greater_than": Kind(
        lambda xp, u, low: low + xp.exp(u),
        lambda xp, y, low: xp.log(y - low),
        lambda xp, u, low: u,
        constants=("low",),
    ),
    "less_than": Kind(
        lambda xp, u, high: high - xp.exp(u),
        lambda xp, y, high: xp.log(high - y),
        lambda xp, u, high: u,
        constants=("high",),
    ),
    "interval": Kind(
        lambda xp, u, low, high: low + (high - low) * sigmoid(xp, u),
        lambda xp, y, low, high: xp.log(y - low) - xp.log(high - y),
        lambda xp, u, low, high: xp.log(high - low) - softplus(xp, u) - softplus(xp, -u),
        constants=("low", "high"),
    ),
    "box": Kind(_into_box, _out_of_box, _box_log_det, constants=("low", "high")),
    "unit_interval": Kind(
        sigmoid, lambda xp, y: xp.log(y) - xp.log1p(-y), lambda xp, u: -softplus(xp, u) - softplus(xp, -u)
    ),
    "simplex": SIMPLEX,
    "ordered": ORDERED,
    "positive_ordered": POSITIVE_ORDERED,
    "zero_sum": ZERO_SUM,
    "l1_ball": L1_BALL,
    "corr_cholesky": CORRELATION_CHOLESKY,
    "corr_matrix": CORRELATION_MATRIX,
    "lower_cholesky": LOWER_CHOLESKY,
    "positive_definite": POSITIVE_DEFINITE,
    "packed_cholesky": PACKED_CHOLESKY,
}
"""Name to map. Saved files name these: a name once given keeps its meaning."""
