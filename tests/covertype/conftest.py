import numpy as np
import pytest
from covertype_prior import PRIOR

from reproduce.targets import BayesianLogisticRegression


@pytest.fixture(scope="session")
def small_data():
    """Forty rows, three features of different scales, labels that depend on them: nothing symmetric."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(40, 3)) * [1.0, 0.5, 2.0] + [0.3, 0.0, -0.5]
    chance = 1 / (1 + np.exp(-(features @ [1.0, -2.0, 0.4] + 0.5)))
    return features.astype(np.float32), np.where(rng.random(40) < chance, 1, -1)


@pytest.fixture(scope="session")
def small(small_data):
    # Under the default prior, forty rows leave the mode at weights of zero.
    return BayesianLogisticRegression(*small_data, **PRIOR)
