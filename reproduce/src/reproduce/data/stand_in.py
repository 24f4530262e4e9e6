"""Made data of Covertype's shape, for tests and for trying a study out without the data."""

import numpy as np

from pushforward.checks import check_count
from reproduce.data.covertype import INDICATORS, QUANTITIES, Covertype

WILDERNESS = 4
BIAS = 0.2


def stand_in(num_rows: int = 5000, seed: int = 0) -> Covertype:
    """Return ten quantities, a one-hot code of four and one of forty, and labels drawn from a logistic model.

    The codes are as uneven as Covertype's: the rarest have a few rows, so that some weights are held by
    the prior more than by the data. That is what makes its posterior more than a Gaussian.
    """
    check_count(num_rows, "num_rows", at_least=400)
    rng = np.random.default_rng(check_count(seed, "seed", at_least=0))
    weights = rng.normal(size=QUANTITIES + INDICATORS)
    quantities = np.round(rng.gamma(4.0, 60.0, (num_rows, QUANTITIES)))
    wild = _codes(rng, num_rows, WILDERNESS, steepness=2.0)
    soil = _codes(rng, num_rows, INDICATORS - WILDERNESS, steepness=6.0)
    features = np.concatenate([quantities, wild, soil], axis=1, dtype=np.float32)
    scaled = np.concatenate([(quantities - 240.0) / 240.0, wild, soil], axis=1)
    probability = 1.0 / (1.0 + np.exp(-(scaled @ weights + BIAS)))
    return Covertype(features, np.where(rng.random(num_rows) < probability, 1, -1))


def _codes(rng: np.random.Generator, num_rows: int, kinds: int, *, steepness: float) -> np.ndarray:
    """Return one-hot codes, each kind rarer than the one before and none without rows."""
    share = np.exp(-steepness * np.arange(kinds) / kinds)
    kind = rng.choice(kinds, num_rows, p=share / share.sum())
    kind[: 4 * kinds] = np.repeat(np.arange(kinds), 4)
    return np.eye(kinds)[rng.permutation(kind)]
