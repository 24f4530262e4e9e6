"""The Laplace approximation: a normal law at the mode with the curvature there."""

from typing import Any

import jax
import numpy as np

from pushforward.frame import Frame
from pushforward.targets import Gaussian
from reproduce.targets.logistic_mode import Peak


def gaussian(peak: Peak) -> Gaussian:
    """Return `N(mode, C)`; a target that can be sampled exactly."""
    return Gaussian(peak.mode, peak.covariance, name="laplace")


def frame(peak: Peak) -> Frame:
    """Return the frame in which the Laplace approximation is standard normal."""
    covariance = np.asarray(peak.covariance)
    sd = np.sqrt(np.diag(covariance))
    zero = np.zeros(len(sd))
    arrays: dict[str, Any] = {
        "centre": peak.mode,
        "scale": sd,
        "bend": zero,
        "shift": zero,
        "matrix": np.linalg.cholesky(covariance / sd / sd[:, None]),
    }
    return Frame(**{name: jax.device_put(np.asarray(a, np.float32)) for name, a in arrays.items()})
