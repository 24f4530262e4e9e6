"""Random targets by number: mixtures, bends, tails, scales over six orders of magnitude, shifts to 1e4.

To see whether a method works where nobody tuned it. Number `i` is the same target always and everywhere.
"""

from math import log

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import KnownExact
from pushforward.checks import check_count
from pushforward.targets.mixture import Mixture

DIMS = (2, 3, 5, 8)
LARGEST_SHIFT = 1e4
"""Also in units of a coordinate's scale: single precision resolves it to 1/1000 then, and no better."""


class RandomTarget(KnownExact):
    """A mixture of normals, bent, stretched and moved; normalised, with exact draws.

        v ~ mixture
        y_{2j+1} = v_{2j+1} + bends_j (v_{2j}^2 - 1),   the even coordinates as they are
        x = centre + scale * sinh(tails * y) / tails,   straight where `tails` is 0

    Both maps invert in closed form; the first has determinant 1.
    """

    base: Mixture
    bends: Float[Array, " pairs"]
    tails: Float[Array, " dim"]
    centre: Float[Array, " dim"]
    scale: Float[Array, " dim"]

    def __init__(
        self,
        base: Mixture,
        *,
        bends: Float[np.ndarray, " pairs"],
        tails: Float[np.ndarray, " dim"],
        centre: Float[np.ndarray, " dim"],
        scale: Float[np.ndarray, " dim"],
        name: str,
    ):
        """Bend, stretch and move `base`."""
        self.base, self.dim, self.name = base, base.dim, name
        self.bends, self.tails = jnp.asarray(bends, float), jnp.asarray(tails, float)
        self.centre, self.scale = jnp.asarray(centre, float), jnp.asarray(scale, float)
        self.window = tuple((float(c - 6 * s), float(c + 6 * s)) for c, s in zip(centre, scale, strict=True))
        self.mean = self.covariance = None
        if not (np.any(bends) or np.any(tails)):
            assert base.mean is not None
            assert base.covariance is not None
            self.mean = self.centre + self.scale * base.mean
            self.covariance = self.scale[:, None] * base.covariance * self.scale

    @property
    def log_z(self) -> Float[Array, ""]:
        """The log of the integral of `exp(log_density)`, which is 0."""
        return jnp.zeros((), self.centre.dtype)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the base's log density where `x` came from, less the log of both stretches."""
        w = (x - self.centre) / self.scale
        safe = jnp.where(self.tails != 0, self.tails, 1.0)
        y = jnp.where(self.tails != 0, jnp.arcsinh(safe * w) / safe, w)
        # cosh(tails * y), without its overflow.
        stretch = 0.5 * jnp.log1p((self.tails * w) ** 2)
        return self.base.log_density(self._bent(y, -1.0)) - jnp.sum(stretch + jnp.log(self.scale))

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw from the mixture, then bend, stretch and move."""
        y = jax.vmap(lambda v: self._bent(v, 1.0))(self.base.sample(key, num_samples))
        safe = jnp.where(self.tails != 0, self.tails, 1.0)
        return self.centre + self.scale * jnp.where(self.tails != 0, jnp.sinh(safe * y) / safe, y)

    def _bent(self, v: Float[Array, " dim"], sign: float) -> Float[Array, " dim"]:
        """Bend the odd coordinates by the even ones before them, or back."""
        pairs = self.bends.shape[0]
        drivers = v[0 : 2 * pairs : 2]
        return v.at[1 : 2 * pairs : 2].add(sign * self.bends * (drivers**2 - 1.0))


def random_target(number: int) -> RandomTarget:
    """Return the random target of that number: of four, one Gaussian, one mixture, one bent, one of all.

    Dimensions 2 to 8; two to six components at least five standard deviations apart, the least with a
    twelfth of the mass; bends to 1 and tails to 0.3; scales `10^-3` to `10^3`, coordinate by coordinate;
    shifts to 10,000, in units of the coordinate and of its scale.
    """
    number = check_count(number, "number", at_least=0)
    rng = np.random.default_rng([2024, number])
    kind, dim = number % 4, int(rng.choice(DIMS))
    has_modes, has_bends = kind in (1, 3), kind in (2, 3)
    scale = 10.0 ** rng.uniform(-3.0, 3.0, dim)
    centre = rng.uniform(-1.0, 1.0, dim) * LARGEST_SHIFT * np.minimum(scale, 1.0)
    base = _mixture(rng, dim, int(rng.integers(2, 7)) if has_modes else 1)
    bends = rng.uniform(0.3, 1.0, dim // 2) * rng.choice([-1.0, 1.0], dim // 2)
    # Where modes are far out, a bend acts on their squares: a smaller one bends as much.
    bends *= (0.05 if has_modes else 1.0) if has_bends else 0.0
    tails = rng.uniform(0.05, 0.3, dim) * (0.2 if has_modes else 1.0) * has_bends
    return RandomTarget(
        base, bends=bends, tails=tails, centre=centre, scale=scale, name=f"random_{number:02d}"
    )


def _mixture(rng: np.random.Generator, dim: int, k: int) -> Mixture:
    """Return components of unlike shapes, placed one after the other at a distance from those before."""
    # Dirichlet shares, mixed with even ones so that no component is too rare to count.
    weights = 0.5 * rng.dirichlet(np.ones(k)) + 0.5 / k
    means = [np.zeros(dim)]
    while len(means) < k:
        place = rng.normal(size=dim) * 6.0
        if min(np.linalg.norm(place - other) for other in means) >= 5.0:
            means.append(place)
    return Mixture(weights, np.stack(means), np.stack([_covariance(rng, dim) for _ in range(k)]))


def _covariance(rng: np.random.Generator, dim: int) -> Float[np.ndarray, "dim dim"]:
    """Return a covariance with variances from 1/10 to 1 along random axes."""
    axes, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    variances = np.exp(rng.uniform(-log(10.0), 0.0, dim))
    return (axes * variances) @ axes.T
