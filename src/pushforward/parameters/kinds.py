"""Every constraint by name."""

from pushforward.parameters.kind import Kind
from pushforward.parameters.matrices import (
    CorrelationCholesky,
    CorrelationMatrix,
    LowerCholesky,
    PackedCholesky,
    PositiveDefinite,
)
from pushforward.parameters.scalars import (
    GreaterThan,
    Interval,
    LessThan,
    Positive,
    Real,
    SoftplusPositive,
    UnitInterval,
)
from pushforward.parameters.vectors import L1Ball, Ordered, PositiveOrdered, Simplex, ZeroSum

KINDS: dict[str, Kind] = {
    "real": Real(),
    "positive": Positive(),
    "softplus_positive": SoftplusPositive(),
    "greater_than": GreaterThan(),
    "less_than": LessThan(),
    "interval": Interval(),
    "unit_interval": UnitInterval(),
    "simplex": Simplex(),
    "ordered": Ordered(),
    "positive_ordered": PositiveOrdered(),
    "zero_sum": ZeroSum(),
    "l1_ball": L1Ball(),
    "corr_cholesky": CorrelationCholesky(),
    "corr_matrix": CorrelationMatrix(),
    "lower_cholesky": LowerCholesky(),
    "positive_definite": PositiveDefinite(),
    "packed_cholesky": PackedCholesky(),
}
"""Name to map. Saved files name these: a name once given keeps its meaning."""

ALIASES = {
    "nonnegative": "positive",
    "lower": "greater_than",
    "upper": "less_than",
    "ordered_vector": "ordered",
    "positive_ordered_vector": "positive_ordered",
    "cholesky": "lower_cholesky",
    "cholesky_corr": "corr_cholesky",
    "correlation_cholesky": "corr_cholesky",
    "correlation": "corr_matrix",
    "covariance": "positive_definite",
    "positive_semidefinite": "positive_definite",
    "real_vector": "real",
    "real_matrix": "real",
}
"""Other words for them."""
