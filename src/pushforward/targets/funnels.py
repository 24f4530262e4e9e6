from math import exp, log, pi

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import KnownExact, Window
from pushforward.checks import check_count, check_positive


class Funnel(KnownExact):
    """Neal's funnel: one coordinate `y` sets the log variance of all others.

    `y ~ N(m, s^2)` and `x_i | y ~ N(c, e^y)`, so that
    `log q = -(y - m)^2 / 2s^2 - sum_i [(x_i - c)^2 e^-y + y] / 2`.
    The variance of the others is `exp(m + s^2 / 2)`, which sample moments reach very slowly.
    """

    neck_mean: Float[Array, ""]
    neck_scale: Float[Array, ""]
    centre: Float[Array, ""]
    neck: int = eqx.field(static=True)

    def __init__(
        self,
        dim: int,
        *,
        neck: int,
        neck_mean: float,
        neck_scale: float,
        centre: float,
        name: str = "funnel",
        window: Window | None = None,
    ):
        """Make a funnel with `y = x[neck]`, `m = neck_mean`, `s = neck_scale` and `c = centre`."""
        self.dim = check_count(dim, "dim", at_least=2)
        self.neck = check_count(neck, "neck", at_least=0)
        if self.neck >= dim:
            raise ValueError(f"`neck` must be below `dim`, {dim}; got {neck}.")
        self.name, self.window = name, window
        self.neck_mean = jnp.asarray(neck_mean, float)
        self.neck_scale = jnp.asarray(check_positive(neck_scale, "neck_scale"), float)
        self.centre = jnp.asarray(centre, float)
        is_neck = np.arange(dim) == self.neck
        self.mean = jnp.asarray(np.where(is_neck, neck_mean, centre), float)
        variances = np.where(is_neck, neck_scale**2, exp(neck_mean + neck_scale**2 / 2))
        self.covariance = jnp.asarray(np.diag(variances))

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`."""
        return 0.5 * self.dim * log(2 * pi) + jnp.log(self.neck_scale)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log density of the neck plus that of the others given it."""
        y, others = x[self.neck], jnp.delete(x, self.neck)
        prior = -0.5 * ((y - self.neck_mean) / self.neck_scale) ** 2
        return prior - 0.5 * jnp.sum((others - self.centre) ** 2 * jnp.exp(-y) + y)

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw the neck, then the others."""
        noise = jax.random.normal(key, (num_samples, self.dim), self.centre.dtype)
        y = self.neck_mean + self.neck_scale * noise[:, self.neck]
        others = self.centre + jnp.exp(y / 2)[:, None] * noise
        return others.at[:, self.neck].set(y)


def funnel() -> Funnel:
    """Return the paper's funnel: `x2 ~ N(4, 3^2)`, `x1 | x2 ~ N(1, e^x2)`, with the right score."""
    window = ((-5.0, 15.0),) * 2
    return Funnel(2, neck=1, neck_mean=4.0, neck_scale=3.0, centre=1.0, window=window)


def funnel_nd(dim: int = 10) -> Funnel:
    """Return Neal's funnel: `x0 ~ N(0, 3^2)`, `x_i | x0 ~ N(0, e^x0)` for the other coordinates."""
    window = ((-9.0, 9.0),) + ((-15.0, 15.0),) * (dim - 1)
    name = "funnel_nd"
    return Funnel(dim, neck=0, neck_mean=0.0, neck_scale=3.0, centre=0.0, name=name, window=window)
