from math import log, pi

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from numpy.typing import ArrayLike

from pushforward.base import KnownExact, Window
from pushforward.checks import check_count
from pushforward.targets.gaussians import cholesky


class Mixture(KnownExact):
    """A mixture of Gaussians, normalised: `q(x) = sum_k w_k N(x; m_k, C_k)`.

    `weights` and `means` are public, so that a metric can count how draws share out over modes.
    """

    weights: Float[Array, " k"]
    means: Float[Array, "k dim"]
    scales: Float[Array, "k dim dim"]
    whitens: Float[Array, "k dim dim"]

    def __init__(
        self,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike,
        *,
        name: str = "mixture",
        window: Window | None = None,
    ):
        """Factorise every covariance `(k, dim, dim)`, and scale the weights to sum to one."""
        shares, centres = check_components(weights, means)
        num_components, self.dim = centres.shape
        spreads = np.asarray(covariances, np.float64)
        expected = (num_components, self.dim, self.dim)
        if spreads.shape != expected:
            raise ValueError(
                f"`covariances` must have shape {expected}, one matrix per row of `means`; "
                f"got {spreads.shape}."
            )
        scales = np.stack([cholesky(c, f"covariances[{k}]", self.dim) for k, c in enumerate(spreads)])
        self.name, self.window = name, window
        self.weights, self.means = jnp.asarray(shares), jnp.asarray(centres)
        self.scales, self.whitens = jnp.asarray(scales), jnp.asarray(np.linalg.inv(scales))
        offsets = centres - shares @ centres
        self.mean = jnp.asarray(shares @ centres)
        within = np.einsum("k,kij->ij", shares, spreads)
        between = np.einsum("k,ki,kj->ij", shares, offsets, offsets)
        self.covariance = jnp.asarray(within + between)

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`, which is 0."""
        return jnp.zeros((), self.weights.dtype)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log of the weighted sum."""
        white = jnp.einsum("kij,kj->ki", self.whitens, x - self.means)
        log_det = jnp.sum(jnp.log(jnp.diagonal(self.whitens, axis1=1, axis2=2)), axis=1)
        parts = jnp.log(self.weights) + log_det - 0.5 * jnp.sum(white**2, axis=1)
        return jax.nn.logsumexp(parts) - 0.5 * self.dim * log(2 * pi)

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Choose a component for each point, then draw from it."""
        key_choice, key_noise = jax.random.split(key)
        choice = jax.random.categorical(key_choice, jnp.log(self.weights), shape=(num_samples,))
        noise = jax.random.normal(key_noise, (num_samples, self.dim), self.means.dtype)
        return self.means[choice] + jnp.einsum("nij,nj->ni", self.scales[choice], noise)


def check_components(
    weights: ArrayLike, means: ArrayLike
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k dim"]]:
    """Return weights that sum to one and the centres they belong to, in double precision."""
    shares, centres = np.asarray(weights, np.float64), np.asarray(means, np.float64)
    if centres.ndim != 2 or centres.size == 0:
        raise ValueError(f"`means` must have shape (k, dim), one row per component; got {centres.shape}.")
    if not np.isfinite(centres).all():
        raise ValueError(f"`means` must be finite; got {centres.tolist()}.")
    if shares.shape != centres.shape[:1]:
        raise ValueError(
            f"`weights` must have shape {centres.shape[:1]}, one per row of `means`; got {shares.shape}."
        )
    if not (np.all(np.isfinite(shares)) and np.all(shares > 0)):
        raise ValueError(
            f"`weights` must be finite and above 0; got {shares.tolist()}. "
            "Leave out components that have no mass."
        )
    return shares / shares.sum(), centres


def mog2() -> Mixture:
    """Return the paper's MOG2: equal halves of `N((-2, 2), I/2)` and `N((2, -2), I/2)`.

    The paper writes `log(exp(-|x - m1|^2) + exp(-|x - m2|^2))`, which is larger by `log 2 pi`.
    """
    return Mixture(
        [0.5, 0.5],
        [[-2.0, 2.0], [2.0, -2.0]],
        [0.5 * np.eye(2)] * 2,
        name="mog2",
        window=((-5.0, 5.0), (-5.0, 5.0)),
    )


def gmm40(dim: int = 2) -> Mixture:
    """Return 40 unit Gaussians of equal weight with means uniform on `[-40, 40]^dim`.

    The benchmark of Midgley et al. (2023) in shape; the means come from a JAX key fixed here.
    """
    shape = (40, check_count(dim, "dim"))
    # Drawn in single precision always, so that the target does not depend on the default one.
    means = jax.random.uniform(jax.random.key(40), shape, jnp.float32, -40.0, 40.0)
    return Mixture(
        np.full(40, 1 / 40),
        np.asarray(means),
        np.broadcast_to(np.eye(dim), (40, dim, dim)),
        name="gmm40",
        window=((-45.0, 45.0),) * dim,
    )
