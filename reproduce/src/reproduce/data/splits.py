"""A part to learn from and a part to be judged by, decided by a seed."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from pushforward.checks import check_count, check_positive
from reproduce.data.scaling import MinMax

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
