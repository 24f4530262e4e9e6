from math import log, pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from numpy.typing import ArrayLike

from pushforward.base import KnownExact, Window
from pushforward.checks import check_count, check_positive


class Gaussian(KnownExact):
    """The normal law of any dimension: `log q(x) = -1/2 (x - m)^T C^-1 (x - m)`.

    Two triangular factors are kept: `scale` with `scale scale^T = C`, which makes draws, and
    `whiten` with `whiten^T whiten = C^-1`, which makes densities without solving a system.
    `loc` is the mean under the name that is never `None`.
    """

    loc: Float[Array, " dim"]
    scale: Float[Array, "dim dim"]
    whiten: Float[Array, "dim dim"]

    def __init__(
        self,
        mean: ArrayLike,
        covariance: ArrayLike | None = None,
        *,
        precision: ArrayLike | None = None,
        name: str = "gaussian",
        window: Window | None = None,
    ):
        """Factorise one of `covariance` and `precision`, in double precision on the host."""
        loc = np.asarray(mean, np.float64)
        if loc.ndim != 1 or loc.size == 0:
            raise ValueError(f"`mean` must have shape (dim,); got shape {loc.shape}.")
        if not np.isfinite(loc).all():
            raise ValueError(f"`mean` must be finite; got {loc.tolist()}.")
        if (covariance is None) == (precision is None):
            raise ValueError(
                "Exactly one of `covariance` and `precision` must be given; got "
                f"{'neither' if covariance is None else 'both'}."
            )
        self.dim, self.name, self.window = loc.size, name, window
        self.loc = self.mean = jnp.asarray(loc)
        if precision is None:
            scale = cholesky(covariance, "covariance", self.dim)
            whiten = np.linalg.inv(scale)
        else:
            whiten = cholesky(precision, "precision", self.dim).T
            scale = np.linalg.inv(whiten)
        self.covariance = jnp.asarray(scale @ scale.T)
        self.scale, self.whiten = jnp.asarray(scale), jnp.asarray(whiten)

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`."""
        return 0.5 * self.dim * log(2 * pi) - jnp.sum(jnp.log(jnp.diag(self.whiten)))

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `-1/2 |whiten (x - loc)|^2`."""
        return -0.5 * jnp.sum((self.whiten @ (x - self.loc)) ** 2)

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw `loc + scale eps`."""
        noise = jax.random.normal(key, (num_samples, self.dim), self.loc.dtype)
        return self.loc + noise @ self.scale.T


def cholesky(matrix: Any, argument: str, dim: int) -> Float[np.ndarray, "dim dim"]:
    """Return the lower Cholesky factor of a user's matrix, in double precision."""
    matrix = np.asarray(matrix, np.float64)
    if matrix.shape != (dim, dim):
        raise ValueError(
            f"`{argument}` must have shape ({dim}, {dim}); got {matrix.shape}. "
            "For a diagonal one write `numpy.diag(variances)`."
        )
    if not np.isfinite(matrix).all():
        raise ValueError(f"`{argument}` must be finite; got {matrix.tolist()}.")
    # The tolerance forgives matrices that were computed in single precision.
    if not np.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-6 * np.abs(matrix).max()):
        worst = np.abs(matrix - matrix.T).max()
        raise ValueError(
            f"`{argument}` must be symmetric; entries differ from their mirror by up to "
            f"{worst:.3g}. Pass `(a + a.T) / 2`."
        )
    try:
        return np.linalg.cholesky((matrix + matrix.T) / 2)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(matrix).min()
        raise ValueError(
            f"`{argument}` must be positive definite; its smallest eigenvalue is {smallest:.3g}. "
            "Add a small multiple of the identity."
        ) from None


def gaussian(dim: int = 2) -> Gaussian:
    """Return the paper's Gaussian for `dim = 2`, the standard normal law otherwise.

    The paper's has mean `(-1, 1)` and *precision* `[[3, -1/2], [-1/2, 1]]`.
    """
    if check_count(dim, "dim") != 2:
        return Gaussian(np.zeros(dim), np.eye(dim), name=f"gaussian_{dim}d", window=((-5.0, 5.0),) * dim)
    return Gaussian([-1.0, 1.0], precision=[[3.0, -0.5], [-0.5, 1.0]], window=((-5.0, 5.0),) * 2)


def correlated_gaussian(key: Key[Array, ""], dim: int = 10, condition_number: float = 100.0) -> Gaussian:
    """Return a Gaussian at 0, its variances log-spaced from 1 down, turned at random by the key."""
    check_count(dim, "dim")
    check_positive(condition_number, "condition_number")
    if condition_number < 1 or (dim == 1 and condition_number != 1):
        got = f"got {condition_number} with dim={dim}"
        raise ValueError(f"`condition_number` must be at least 1, and 1 if `dim` is 1; {got}.")
    # Drawn in single precision always, so that the target does not depend on the default one.
    rotation = np.asarray(jax.random.orthogonal(key, dim, dtype=jnp.float32), np.float64)
    variances = np.logspace(0, -np.log10(condition_number), dim)
    # float32 rotations are orthogonal to 1e-7; one QR step in double makes the spectrum exact.
    rotation, _ = np.linalg.qr(rotation)
    return Gaussian(
        np.zeros(dim),
        (rotation * variances) @ rotation.T,
        name="correlated_gaussian",
        window=((-4.0, 4.0),) * dim,
    )
