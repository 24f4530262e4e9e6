"""Gaussians seen through a bend of unit Jacobian, which keeps their constant and their sampler."""

from collections.abc import Callable
from math import cos, exp, sin

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from numpy.typing import ArrayLike

from pushforward.base import KnownExact, Window
from pushforward.targets.gaussians import Gaussian

Warp = Callable[[Float[Array, " dim"]], Float[Array, " dim"]]


class Warped(KnownExact):
    """The law of `x = warp(u)` for a Gaussian `u`: `log q(x) = log q_u(unwarp(x))`.

    `warp` and `unwarp` are functions of one point, inverse to each other, with `|det| = 1`.
    They should be top-level functions, so that equal targets share one compiled program.
    """

    base: Gaussian
    warp: Warp = eqx.field(static=True)
    unwarp: Warp = eqx.field(static=True)

    def __init__(
        self,
        base: Gaussian,
        warp: Warp,
        unwarp: Warp,
        *,
        mean: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        name: str = "warped",
        window: Window | None = None,
    ):
        """Bend `base`; its moments after the bend are the author's to work out."""
        self.base, self.warp, self.unwarp = base, warp, unwarp
        moments = (None if each is None else jnp.asarray(each, float) for each in (mean, covariance))
        self.mean, self.covariance = moments
        self.dim, self.name, self.window = base.dim, name, window

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`: the base's own."""
        return self.base.log_z

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the base's log density at `unwarp(x)`."""
        return self.base.log_density(self.unwarp(x))

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw from the base and bend."""
        return jax.vmap(self.warp)(self.base.sample(key, num_samples))


def _rosenbrock_warp(u: Float[Array, " 2"]) -> Float[Array, " 2"]:
    # Its own inverse.
    return jnp.stack([-u[0], -u[1] - u[0] ** 2 - 1])


def rosenbrock() -> Warped:
    """Return the paper's Rosenbrock: `x = (-u1, -u2 - u1^2 - 1)`, `u ~ N((0, 1), [[1, .5], [.5, 1]])`."""
    return Warped(
        Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]]),
        _rosenbrock_warp,
        _rosenbrock_warp,
        mean=[0.0, -3.0],
        covariance=[[1.0, 0.5], [0.5, 3.0]],
        name="rosenbrock",
        window=((-7.0, 7.0), (-12.0, 2.0)),
    )


def _squiggle_warp(u: Float[Array, " 2"]) -> Float[Array, " 2"]:
    return u.at[1].add(-jnp.sin(2 * u[0]))


def _squiggle_unwarp(x: Float[Array, " 2"]) -> Float[Array, " 2"]:
    return x.at[1].add(jnp.sin(2 * x[0]))


def squiggle() -> Warped:
    """Return the paper's Squiggle: `x = (u1, u2 - sin 2u1)`, `u ~ N((1, 1), [[2, .25], [.25, .5]])`.

    The moments use `E exp(i k u1) = exp(i k - k^2)`, and Stein's identity for the cross terms.
    """
    sine = sin(2) * exp(-4)  # E sin 2u1
    slope = 2 * cos(2) * exp(-4)  # E (sin 2u1)' = cov(u, sin 2u1) / cov(u, u1)
    variance = (1 - cos(4) * exp(-16)) / 2 - sine**2  # of sin 2u1
    cross = 0.25 - 2 * slope
    return Warped(
        Gaussian([1.0, 1.0], [[2.0, 0.25], [0.25, 0.5]]),
        _squiggle_warp,
        _squiggle_unwarp,
        mean=[1.0, 1.0 - sine],
        covariance=[[2.0, cross], [cross, 0.5 + variance - 2 * 0.25 * slope]],
        name="squiggle",
        window=((-5.0, 5.0), (-5.0, 5.0)),
    )


def _banana_warp(u: Float[Array, " 2"]) -> Float[Array, " 2"]:
    return u.at[1].add(-0.03 * (u[0] ** 2 - 100))


def _banana_unwarp(x: Float[Array, " 2"]) -> Float[Array, " 2"]:
    return x.at[1].add(0.03 * (x[0] ** 2 - 100))


def banana() -> Warped:
    """Return the banana of Haario et al. (1999): `x = (u1, u2 - b (u1^2 - 100))`, `b = 0.03`.

    Here `u ~ N(0, diag(100, 1))`, so the two coordinates are uncorrelated and far from independent.
    The paper names a banana in an older table without defining it; this is the usual one.
    """
    return Warped(
        Gaussian([0.0, 0.0], [[100.0, 0.0], [0.0, 1.0]]),
        _banana_warp,
        _banana_unwarp,
        mean=[0.0, 0.0],
        covariance=[[100.0, 0.0], [0.0, 1 + 2 * (0.03 * 100) ** 2]],
        name="banana",
        window=((-30.0, 30.0), (-25.0, 10.0)),
    )
