from math import lgamma, log, pi

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from numpy.typing import ArrayLike

from pushforward.base import KnownExact, Window
from pushforward.checks import check_count, check_positive
from pushforward.targets.mixture import check_components


def _log_z(df: float) -> float:
    """Return the log of the integral of `(1 + z^2 / df)^(-(df + 1) / 2)` over the line."""
    return lgamma(df / 2) - lgamma((df + 1) / 2) + 0.5 * log(df * pi)


def _draw(key: Key[Array, ""], df: Float[Array, ""], shape: tuple[int, int]) -> Float[Array, "n dim"]:
    """Draw standard Student-t numbers by Bailey's polar method (1994), a Box-Muller for t laws.

    `sqrt(v (U^(-2/v) - 1)) cos(2 pi V)` with uniform `U`, `V` is exact for every `v`, and spares
    the loop that drawing a chi-squared would need.
    """
    key_radius, key_angle = jax.random.split(key)
    exponent = jax.random.exponential(key_radius, shape, df.dtype)  # -log U
    angle = jax.random.uniform(key_angle, shape, df.dtype, -pi, pi)
    return jnp.sqrt(df * jnp.expm1(2 * exponent / df)) * jnp.cos(angle)


class StudentTMixture(KnownExact):
    """A mixture of products of Student-t marginals, normalised: `sum_k w_k prod_i t_v(x_i - m_ki)`.

    `means` are the centres of the components, under the name that `Mixture` gives them, even where
    `v <= 1` and no mean exists; then `mean` is `None`, as `covariance` is for `v <= 2`.
    """

    df: Float[Array, ""]
    weights: Float[Array, " k"]
    means: Float[Array, "k dim"]
    scale: Float[Array, ""]
    log_norm: Float[Array, ""]

    def __init__(
        self,
        df: float,
        weights: ArrayLike,
        means: ArrayLike,
        scale: float = 1.0,
        *,
        name: str = "student_t_mixture",
        window: Window | None = None,
    ):
        """Make a mixture of components that differ in their centres, the `means`, only."""
        df, scale = check_positive(df, "df"), check_positive(scale, "scale")
        shares, centres = check_components(weights, means)
        self.dim, self.name, self.window = centres.shape[1], name, window
        self.df, self.scale = jnp.asarray(df, float), jnp.asarray(scale, float)
        self.weights, self.means = jnp.asarray(shares), jnp.asarray(centres)
        self.log_norm = jnp.asarray(self.dim * (_log_z(df) + log(scale)), float)
        self.mean = jnp.asarray(shares @ centres) if df > 1 else None
        self.covariance = None
        if df > 2:
            offsets = centres - shares @ centres
            between = np.einsum("k,ki,kj->ij", shares, offsets, offsets)
            self.covariance = jnp.asarray(between + np.eye(self.dim) * scale**2 * df / (df - 2))

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`, which is 0."""
        return jnp.zeros((), self.weights.dtype)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log of the weighted sum."""
        z = (x - self.means) / self.scale
        parts = -0.5 * (self.df + 1) * jnp.sum(jnp.log1p(z**2 / self.df), axis=1)
        return jax.nn.logsumexp(parts + jnp.log(self.weights)) - self.log_norm

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Choose a component for each point, then draw from it."""
        key_choice, key_noise = jax.random.split(key)
        choice = jax.random.categorical(key_choice, jnp.log(self.weights), shape=(num_samples,))
        noise = _draw(key_noise, self.df, (num_samples, self.dim))
        return self.means[choice] + self.scale * noise


def student_t(df: float = 5.0, dim: int = 1) -> StudentTMixture:
    """Return standard Student-t coordinates; the paper gives no `df`, related code uses 5."""
    centre = np.zeros((1, check_count(dim, "dim")))
    return StudentTMixture(df, [1.0], centre, name="student_t", window=((-8.0, 8.0),) * dim)


def student_t_mixture(dim: int = 2, df: float = 2.0) -> StudentTMixture:
    """Return ten Student-t products of equal weight with centres uniform on `[-10, 10]^dim`.

    The benchmark of Blessing et al. (2024) in shape; the centres come from a JAX key fixed here.
    """
    shape = (10, check_count(dim, "dim"))
    # Drawn in single precision always, so that the target does not depend on the default one.
    means = jax.random.uniform(jax.random.key(10), shape, jnp.float32, -10.0, 10.0)
    window = ((-16.0, 16.0),) * dim
    return StudentTMixture(df, np.full(10, 0.1), np.asarray(means), window=window)
