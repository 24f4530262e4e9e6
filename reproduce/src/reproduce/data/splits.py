"""A part to learn from and a part to be judged by, decided by a seed; features scaled by the first alone."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from pushforward.checks import check_count, check_positive


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


MAX_TRIES = 20


class Split(NamedTuple):
    """Training and held-out parts; features scaled by the ranges of the training part."""

    features: Float[np.ndarray, "train features"]
    labels: Int[np.ndarray, " train"]
    test_features: Float[np.ndarray, "test features"]
    test_labels: Int[np.ndarray, " test"]


def split(
    features: Float[np.ndarray, "rows features"],
    labels: Int[np.ndarray, " rows"],
    seed: int,
    *,
    test_share: float = 0.2,
) -> Split:
    """Split at random, then scale.

    **Arguments:**

    - `features`, `labels`: all rows.
    - `seed`: decides the split; the same seed, the same split.
    - `test_share`: of the rows, held out.

    A rare indicator may be in the held-out part only, so that the training part cannot know its weight.
    Such a permutation is passed over for the seed's next one.
    """
    num_rows, share = len(labels), check_positive(test_share, "test_share")
    held_out = int(num_rows * share)
    if len(features) != num_rows or not 0 < held_out < num_rows:
        raise ValueError(
            f"`features` and `labels` must agree in rows and `test_share` leave some on both sides; got "
            f"{len(features)} and {num_rows} rows and {test_share}."
        )
    varies = features.min(axis=0) < features.max(axis=0)
    rng = np.random.default_rng(check_count(seed, "seed", at_least=0))
    train, test, seen = np.arange(0), np.arange(0), features
    for _ in range(MAX_TRIES):
        order = rng.permutation(num_rows)
        test, train = order[:held_out], order[held_out:]
        seen = features[train]
        if ((seen.min(axis=0) < seen.max(axis=0)) == varies).all():
            break
    scale = MinMax.fit(seen)
    return Split(scale(seen), labels[train], scale(features[test]), labels[test])
