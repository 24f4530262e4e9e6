"""Rings and ribbons: the paper's Donut, and the four potentials `U` of Rezende and Mohamed (2015).

`log q = -U`, closed where they are open.
"""

from collections.abc import Callable
from math import log, pi

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key
from numpy.typing import ArrayLike

from pushforward.checks import check_positive
from reproduce.targets.grid import GridLaw, KnownExact


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


class SplitRing(KnownExact):
    """The first potential: a ring with its mass drawn to two opposite sides.

    `U1 = ((|z| - 2) / 0.4)^2 / 2 - log(e^(-((z1 - 2) / 0.6)^2 / 2) + e^(-((z1 + 2) / 0.6)^2 / 2))`.
    Exact draws: points of the plain ring, kept with the probability that the second factor names.
    """

    plain: Donut
    log_z: Float[Array, ""]

    def __init__(self, *, name: str = "rezende1"):
        """Find the moments by quadrature over angle and radius."""
        self.plain = Donut(2.0, 0.4)
        # An even rule on a periodic function: 256 angles are exact to rounding.
        cosine = np.cos(np.arange(256) * 2 * pi / 256)

        def integrand(r: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m 3"]:
            z1 = r[:, None] * cosine
            kept = np.exp(np.asarray(_log_pull(jnp.asarray(z1)), np.float64))
            powers = np.stack([np.ones_like(z1), z1**2, (r**2)[:, None] - z1**2], axis=-1)
            return (kept[..., None] * powers).mean(1)

        mass, first, second = self.plain.law.expectation(integrand)
        self.mean = jnp.asarray(np.zeros(2))
        self.covariance = jnp.asarray(np.diag([first, second]) / mass)
        self.log_z = self.plain.log_z + log(mass)
        self.dim, self.name, self.window = 2, name, self.plain.window

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `-U1(x)`."""
        return self.plain.log_density(x) + _log_pull(x[0])

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw by rejection from the ring; about every second proposal is kept."""

        def propose(carry):
            key, draws, kept = carry
            key, key_ring, key_keep = jax.random.split(key, 3)
            fresh = self.plain.sample(key_ring, num_samples)
            # The pull exceeds its bound of one by 2e-10 at most, less than rounding.
            height = jnp.exp(_log_pull(fresh[:, 0]))
            take = ~kept & (jax.random.uniform(key_keep, kept.shape, height.dtype) < height)
            return key, jnp.where(take[:, None], fresh, draws), kept | take

        def unfinished(carry) -> Bool[Array, ""]:
            return ~jnp.all(carry[2])

        blank = jnp.zeros((num_samples, 2), self.plain.ring.dtype)
        start = key, blank, jnp.zeros(num_samples, bool)
        _, draws, _ = jax.lax.while_loop(unfinished, propose, start)
        return draws


def _log_pull(z1: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return jnp.logaddexp(-0.5 * ((z1 - 2) / 0.6) ** 2, -0.5 * ((z1 + 2) / 0.6) ** 2)


class Ribbon(KnownExact):
    """Wavy strands along `z1`: `log q = -(z1/4)^4 + log sum_k exp(-((z2 - c_k(z1)) / s_k)^2 / 2)`.

    Potentials two to four have the second term only, which is flat along `z1` and so has no finite
    mass; plots hide this by their window. Flow libraries add a quartic wall, and so does this: here
    `-(z1 / 4)^4`, in `z1` alone. It leaves `z1` a law of its own, and `z2 | z1` a mixture of
    Gaussians with weights `s_k / sum s`.
    """

    law: GridLaw
    widths: Float[Array, " k"]
    centres: Callable[[Float[Array, ""]], Float[Array, " k"]] = eqx.field(static=True)

    def __init__(
        self, centres: Callable[[Float[Array, ""]], Float[Array, " k"]], widths: ArrayLike, *, name: str
    ):
        """Make strands of the given `widths` whose `centres` are a top-level function of `z1`."""
        widths = np.asarray(widths, np.float64)
        # Beyond 10 the density has fallen by exp(-39).
        self.law = GridLaw(lambda z1: np.exp(-((z1 / 4) ** 4)), -10.0, 10.0)
        shares = widths / widths.sum()

        def moments(z1: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m 5"]:
            strands = np.asarray(jax.vmap(centres)(jnp.asarray(z1)), np.float64)
            z2, squared = strands @ shares, (strands**2 + widths**2) @ shares
            return np.stack([z1, z2, z1**2, z1 * z2, squared], axis=-1)

        m1, m2, m11, m12, m22 = self.law.expectation(moments)
        raw = np.array([[m11, m12], [m12, m22]])
        self.mean = jnp.asarray(np.array([m1, m2]))
        self.covariance = jnp.asarray(raw - np.outer([m1, m2], [m1, m2]))
        self.widths, self.centres = jnp.asarray(widths), centres
        self.dim, self.name, self.window = 2, name, ((-6.0, 6.0), (-5.0, 3.0))

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`."""
        return self.law.log_z + 0.5 * log(2 * pi) + jnp.log(jnp.sum(self.widths))

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log of the sum over strands, closed softly at both ends."""
        strands = -0.5 * ((x[1] - self.centres(x[0])) / self.widths) ** 2
        return jax.nn.logsumexp(strands) - (x[0] / 4) ** 4

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw `z1`, a strand, and the place across it."""
        key_along, key_strand, key_across = jax.random.split(key, 3)
        z1 = self.law.sample(key_along, num_samples)
        strand = jax.random.categorical(key_strand, jnp.log(self.widths), shape=(num_samples,))
        noise = jax.random.normal(key_across, (num_samples,), z1.dtype)

        def place(z1: Float[Array, ""], strand: Int[Array, ""], noise: Float[Array, ""]):
            return jnp.stack([z1, self.centres(z1)[strand] + self.widths[strand] * noise])

        return jax.vmap(place)(z1, strand, noise)


def _wave(z1: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.sin(pi * z1 / 2)


def _one_strand(z1: Float[Array, ""]) -> Float[Array, " 1"]:
    return _wave(z1)[None]


def _bump_strands(z1: Float[Array, ""]) -> Float[Array, " 2"]:
    return jnp.stack([_wave(z1), _wave(z1) - 3 * jnp.exp(-0.5 * ((z1 - 1) / 0.6) ** 2)])


def _fork_strands(z1: Float[Array, ""]) -> Float[Array, " 2"]:
    return jnp.stack([_wave(z1), _wave(z1) - 3 * jax.nn.sigmoid((z1 - 1) / 0.3)])


def rezende1() -> SplitRing:
    """Return the first potential, a split ring; proper as published."""
    return SplitRing()


def rezende2() -> Ribbon:
    """Return the second potential, one wave: `c = sin(pi z1 / 2)` with `s = 0.4`."""
    return Ribbon(_one_strand, [0.4], name="rezende2")


def rezende3() -> Ribbon:
    """Return the third: `c` and `c - 3 exp(-((z1 - 1) / 0.6)^2 / 2)`, both with `s = 0.35`."""
    return Ribbon(_bump_strands, [0.35, 0.35], name="rezende3")


def rezende4() -> Ribbon:
    """Return the fourth: `c` with `s = 0.4` and `c - 3 sigmoid((z1 - 1) / 0.3)` with `s = 0.35`."""
    return Ribbon(_fork_strands, [0.4, 0.35], name="rezende4")
