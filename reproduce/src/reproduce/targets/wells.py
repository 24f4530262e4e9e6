from math import log, pi

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import KnownExact
from pushforward.checks import check_count
from reproduce.targets.grid import GridLaw


class ManyWell(KnownExact):
    """Independent pairs `(d, v)`, each a lopsided double well times a standard normal.

    `log q = sum over pairs of 0.5 d + 6 d^2 - d^4 - v^2 / 2`, with the pairs interleaved as
    `x = (d1, v1, d2, v2, ...)`: `2^(dim/2)` modes near `d = +-1.7`, `d > 0` the heavier side, with
    a barrier of nine nats between. Each `d` is drawn by inverting its distribution function.
    """

    law: GridLaw

    def __init__(self, dim: int, *, name: str = "many_well"):
        """Make `dim / 2` pairs."""
        if check_count(dim, "dim", at_least=2) % 2:
            raise ValueError(f"`dim` must be even, two coordinates per well; got {dim}.")
        # Beyond 4 the density has fallen by exp(-160).
        self.law = GridLaw(lambda d: np.exp(0.5 * d + 6 * d**2 - d**4), -4.0, 4.0)
        centre = float(self.law.expectation(lambda d: d))
        variance = float(self.law.expectation(lambda d: (d - centre) ** 2))
        self.mean = jnp.asarray(np.tile([centre, 0.0], dim // 2))
        self.covariance = jnp.asarray(np.diag(np.tile([variance, 1.0], dim // 2)))
        self.dim, self.name = dim, name
        self.window = ((-3.0, 3.0), (-4.0, 4.0)) * (dim // 2)

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`."""
        return 0.5 * self.dim * (self.law.log_z + 0.5 * log(2 * pi))

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the sum over pairs."""
        d, v = x[0::2], x[1::2]
        return jnp.sum(0.5 * d + 6 * d**2 - d**4 - 0.5 * v**2)

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw every `d` and every `v` on its own."""
        key_wells, key_normals = jax.random.split(key)
        shape = (num_samples, self.dim // 2)
        d = self.law.sample(key_wells, num_samples * self.dim // 2).reshape(shape)
        v = jax.random.normal(key_normals, shape, d.dtype)
        return jnp.stack([d, v], axis=-1).reshape(num_samples, self.dim)


def double_well() -> ManyWell:
    """Return `log q = 0.5 x1 + 6 x1^2 - x1^4 - x2^2 / 2`, one pair of the many-well."""
    return ManyWell(2, name="double_well")


def many_well(dim: int = 32) -> ManyWell:
    """Return the many-well of Noé et al. (2019) and Midgley et al. (2023): `dim / 2` pairs."""
    return ManyWell(dim)
