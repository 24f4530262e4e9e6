"""Distances between images in the feature space of a classifier: FID and KID."""

import numpy as np
import scipy.linalg
from jaxtyping import Float

Features = Float[np.ndarray, "_images _features"]


class Reference:
    """Features that others are held against; what depends on them alone is computed once."""

    def __init__(self, features: Features):
        """Read off moments and the kernel's mean."""
        self.features = _checked(features, "features")
        self.mean, self.covariance = self.features.mean(axis=0), np.cov(self.features, rowvar=False)
        self._within: float | None = None

    def fid(self, features: Features) -> float:
        """Return the Fréchet distance between normal laws with the moments of two sets of features.

        `|mu_1 - mu_2|^2 + tr(S_1 + S_2 - 2 (S_1 S_2)^(1/2))`. It is biased upwards for few images: compare
        only figures of the same numbers of them, and the floor beside them.
        """
        theirs = self._comparable(features)
        covariance = np.cov(theirs, rowvar=False)
        values, vectors = scipy.linalg.eigh(covariance)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        # The product is not symmetric, its symmetric twin has the same eigenvalues.
        twin = scipy.linalg.eigvalsh(root @ self.covariance @ root)
        gap = theirs.mean(axis=0) - self.mean
        cross = np.sqrt(np.maximum(twin, 0.0)).sum()
        return float(gap @ gap + np.trace(covariance) + np.trace(self.covariance) - 2.0 * cross)

    def kid(self, features: Features) -> float:
        """Return the unbiased squared MMD between two sets of features, with the kernel `(x.y / d + 1)^3`."""
        theirs = self._comparable(features)
        if self._within is None:
            self._within = _within(self.features)
        across = _kernel_sum(theirs, self.features) / (len(theirs) * len(self.features))
        return _within(theirs) + self._within - 2.0 * across

    def _comparable(self, features: Features) -> np.ndarray:
        theirs = _checked(features, "features")
        if theirs.shape[1] != self.features.shape[1]:
            raise ValueError(
                f"both sets must be features of one classifier; got {theirs.shape[1]} and "
                f"{self.features.shape[1]} of them."
            )
        return theirs


def fid(first: Features, second: Features) -> float:
    """Return the Fréchet distance between two sets of features: `Reference.fid`."""
    return Reference(second).fid(first)


def kid(first: Features, second: Features) -> float:
    """Return the kernel distance between two sets of features: `Reference.kid`."""
    return Reference(second).kid(first)


def _within(features: np.ndarray) -> float:
    """Return the kernel's mean over pairs of different images."""
    n = len(features)
    same = float(((np.sum(features * features, axis=1) / features.shape[1] + 1.0) ** 3).sum())
    return (_kernel_sum(features, features) - same) / (n * (n - 1))


def _kernel_sum(a: np.ndarray, b: np.ndarray, tile: int = 2048) -> float:
    """Return the sum over all pairs, in tiles that fit in memory."""
    total = 0.0
    for start in range(0, len(a), tile):
        inner = a[start : start + tile] @ b.T / a.shape[1] + 1.0
        total += float((inner * inner * inner).sum())
    return total


def _checked(features: np.ndarray, name: str) -> np.ndarray:
    if np.ndim(features) != 2 or len(features) < 2:
        raise ValueError(
            f"`{name}` must have shape (images, features), two images at least; got {np.shape(features)}."
        )
    if not np.isfinite(features).all():
        raise ValueError(f"`{name}` must be finite; some features are not. Look at the images.")
    return np.asarray(features, np.float64)
