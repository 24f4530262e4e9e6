from math import log, pi

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.checks import check_positive
from reproduce.targets.fields import KnownExact
from reproduce.targets.grid import GridLaw


def radius(x: Float[Array, " dim"]) -> Float[Array, ""]:
    """Return `|x|`, with gradient 0 in place of 0/0 at the origin.

    The cut at 1e-6 keeps third derivatives, which grow as `|x|^-5` on the way, finite in float32.
    The value is exact everywhere; only within the cut is the gradient that of a constant.
    """
    squared = jnp.sum(x**2)
    near = squared < 1e-12
    inside = jnp.sqrt(jax.lax.stop_gradient(squared))
    return jnp.where(near, inside, jnp.sqrt(jnp.where(near, 1.0, squared)))


class Donut(KnownExact):
    """A ring in the plane: `log q(x) = -(|x| - R)^2 / (2 t^2)`.

    In polar coordinates the angle is uniform and the radius has density `r exp(-(r-R)^2 / 2t^2)`,
    drawn by inverting its distribution function on a fine grid.
    """

    law: GridLaw
    ring: Float[Array, ""]
    width: Float[Array, ""]

    def __init__(self, ring: float = 2.5, width: float = 0.5, *, name: str = "donut"):
        """Make the ring of radius `R = ring` and radial standard deviation `t = width`."""
        ring, width = check_positive(ring, "ring"), check_positive(width, "width")
        # Nine widths leave out less than 1e-16 of the mass.
        low, high = max(0.0, ring - 9 * width), ring + 9 * width
        self.law = GridLaw(lambda r: r * np.exp(-0.5 * ((r - ring) / width) ** 2), low, high)
        self.ring, self.width = jnp.asarray(ring, float), jnp.asarray(width, float)
        self.mean = jnp.asarray(np.zeros(2))
        self.covariance = jnp.asarray(np.eye(2) * self.law.expectation(lambda r: r**2) / 2)
        self.dim, self.name = 2, name
        half = ring + 5 * width
        self.window = ((-half, half), (-half, half))

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`."""
        return log(2 * pi) + self.law.log_z

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `-(|x| - R)^2 / (2 t^2)`; the gradient at the origin, where none exists, is 0."""
        return -0.5 * ((radius(x) - self.ring) / self.width) ** 2

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw a radius and an angle."""
        key_radius, key_angle = jax.random.split(key)
        r = self.law.sample(key_radius, num_samples)
        angle = jax.random.uniform(key_angle, (num_samples,), r.dtype, -pi, pi)
        return r[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


def donut() -> Donut:
    """Return the paper's Donut: `log q = -(|x| - 2.5)^2 / 0.5`, so `t = 0.5`."""
    return Donut()
