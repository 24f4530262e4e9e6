"""The Laplace approximation: a normal law at the mode with the curvature there."""

from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float

from pushforward.frame import Frame
from pushforward.targets import Gaussian


@runtime_checkable
class Peaked(Protocol):
    """What is needed of a mode: `targets.logistic_mode.Peak` is one."""

    @property
    def mode(self) -> Float[np.ndarray, " dim"]:
        """The mode."""
        ...

    @property
    def covariance(self) -> Float[np.ndarray, "dim dim"]:
        """The inverse of minus the Hessian of the log density at the mode."""
        ...


def gaussian(peak: Peaked) -> Gaussian:
    """Return `N(mode, C)`; a target that can be sampled exactly."""
    return Gaussian(peak.mode, peak.covariance, name="laplace")


def frame(peak: Peaked) -> Frame:
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
