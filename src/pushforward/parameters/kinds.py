"""Every constraint by name; those of single numbers are written here."""

from pushforward.parameters.kind import Kind, sigmoid, softplus
from pushforward.parameters.matrices import (
    CORRELATION_CHOLESKY,
    CORRELATION_MATRIX,
    LOWER_CHOLESKY,
    PACKED_CHOLESKY,
    POSITIVE_DEFINITE,
)
from pushforward.parameters.vectors import L1_BALL, ORDERED, POSITIVE_ORDERED, SIMPLEX, ZERO_SUM

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
    "unit_interval": Kind(
        sigmoid,
        lambda xp, y: xp.log(y) - xp.log1p(-y),
        lambda xp, u: -softplus(xp, u) - softplus(xp, -u),
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
