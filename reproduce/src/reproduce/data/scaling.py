"""Features brought to [0, 1], by what the training part alone shows."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike


class MinMax(NamedTuple):
    """`(f - low) / (high - low)`, column by column; made with `MinMax.fit(training_features)`."""

    low: Float[np.ndarray, " features"]
    high: Float[np.ndarray, " features"]

    @classmethod
    def fit(cls, features: ArrayLike) -> "MinMax":
        """Read the ranges off the training features."""
        matrix = np.asarray(features)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ValueError(f"`features` must have shape (rows, features); got {matrix.shape}.")
        if not np.isfinite(matrix).all():
            bad = np.flatnonzero(~np.isfinite(matrix).all(axis=0))[:5].tolist()
            raise ValueError(
                f"`features` must be finite; column(s) {bad} are not. Drop rows or fill the gaps."
            )
        low, high = matrix.min(axis=0), matrix.max(axis=0)
        if (low == high).any():
            constant = np.flatnonzero(low == high)[:5].tolist()
            raise ValueError(
                f"`features` must vary in every column; column(s) {constant} are constant in "
                "the training part and have no range to scale by. Drop them, or split otherwise."
            )
        return cls(low, high)

    def __call__(self, features: ArrayLike) -> Float[np.ndarray, "rows features"]:
        """Scale features, of the training part or of any other; those of others may leave [0, 1]."""
        return ((np.asarray(features) - self.low) / (self.high - self.low)).astype(np.float32)
