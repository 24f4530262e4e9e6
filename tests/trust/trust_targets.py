"""Targets and settings of these tests: two classes of one shape each, so that little is compiled."""

import numpy as np

from pushforward.targets import Mixture
from pushforward.trust import CheckSettings

QUICK = CheckSettings(ksd_draws=1000, num_bootstraps=499, num_particles=1024, census_repeats=4)


def mixture(weights=(0.45, 0.45, 0.1), means=((0, 0), (6, 0), (0, 6)), covariance=((1, 0), (0, 1))):
    """Three Gaussians in the plane: apart, or, with equal means, one."""
    return Mixture(np.array(weights), np.array(means, float), np.array([covariance] * 3, float))
