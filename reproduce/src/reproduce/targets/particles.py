"""Targets of physics, of which nobody knows exact draws: the particles DW-4 and LJ-13, a lattice field."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pushforward.checks import check_count, check_positive
from reproduce.targets.grid import Known

CORE = 0.5  # in units of the best distance: nearer pairs have energies above 3,900, where no draw ever is


class Particles(Known):
    """Particles in a space, of which only the energy is told: `log q = -E / T - n |c|^2 / 2`.

    The last term, with `c` the mean position, holds the centre at a standard normal; without it shifts would
    leave the density improper. Turns, mirror images and exchanges are symmetries: compare what they do not
    move, such as `pair_distances`. No exact sampler is known.
    """

    temperature: Float[Array, ""]
    num_particles: int = eqx.field(static=True)
    space: int = eqx.field(static=True)

    def __init__(self, num_particles: int, space: int, temperature: float, name: str):
        """Place `num_particles` in `space` dimensions."""
        self.num_particles = check_count(num_particles, "num_particles", at_least=2)
        self.space = check_count(space, "space")
        self.dim, self.name = self.num_particles * self.space, name
        self.temperature = jnp.asarray(check_positive(temperature, "temperature"), float)

    @abc.abstractmethod
    def energy(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `E`."""

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `-E / T` and the term that holds the centre."""
        centre = jnp.mean(x.reshape(self.num_particles, self.space), axis=0)
        return -self.energy(x) / self.temperature - 0.5 * self.num_particles * jnp.sum(centre**2)


class DoubleWellParticles(Particles):
    """Particles whose every pair feels a double well in its distance."""

    a: Float[Array, ""]
    b: Float[Array, ""]
    offset: Float[Array, ""]

    def __init__(
        self,
        num_particles: int = 4,
        space: int = 2,
        *,
        a: float = 0.9,
        b: float = -4.0,
        offset: float = 4.0,
        temperature: float = 1.0,
        name: str = "dw4",
    ):
        """Make particles with `r0 = offset`; the defaults are the usual four in the plane."""
        super().__init__(num_particles, space, temperature, name)
        self.a = jnp.asarray(check_positive(a, "a"), float)
        self.b = jnp.asarray(b, float)
        self.offset = jnp.asarray(check_positive(offset, "offset", zero=True), float)

    def energy(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the sum over pairs, each counted once."""
        squared = squared_pair_distances(x, self.num_particles, self.space)
        # Where two particles meet the distance has no gradient; none is as good as any.
        tiny = jnp.finfo(x.dtype).tiny ** 0.5
        gap = (jnp.sqrt(jnp.maximum(squared, tiny)) - self.offset) ** 2
        return jnp.sum(self.a * gap**2 + self.b * gap)


class LennardJones(Particles):
    """A Lennard-Jones cluster in a harmonic well.

        E = strength sum over pairs i < j of [ (1/r_ij)^12 - 2 (1/r_ij)^6 ] + 1/2 sum_i |x_i - c|^2

    with distances in units of the best one and `c` the mean position.

    **A trap.** Papers write a sum over pairs with a factor 1/2 for counting each twice. The code whose draws
    are the usual reference counts each pair twice and leaves out the half, which is `strength = 2`, the
    default here; older code of the same authors has `strength = 1`, a cluster at twice the temperature.

    Below half the best distance the pair energy goes on as a straight line in `r^2`, so that a point anywhere
    has a finite energy and score; draws never are there.
    """

    strength: Float[Array, ""]

    def __init__(
        self,
        num_particles: int = 13,
        space: int = 3,
        *,
        strength: float = 2.0,
        temperature: float = 1.0,
        name: str = "lj13",
    ):
        """Make a cluster; the defaults are the usual thirteen."""
        super().__init__(num_particles, space, temperature, name)
        self.strength = jnp.asarray(check_positive(strength, "strength"), float)

    def energy(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the pairs' energy and that of the harmonic well."""
        pairs = _lennard_jones(squared_pair_distances(x, self.num_particles, self.space))
        positions = x.reshape(self.num_particles, self.space)
        around = positions - jnp.mean(positions, axis=0)
        return self.strength * jnp.sum(pairs) + 0.5 * jnp.sum(around**2)


def squared_pair_distances(x: Float[Array, " dim"], num_particles: int, space: int) -> Float[Array, " pairs"]:
    """Return the squared distance of every pair `i < j`."""
    positions = x.reshape(num_particles, space)
    i, j = np.triu_indices(num_particles, k=1)
    return jnp.sum((positions[i] - positions[j]) ** 2, axis=-1)


def pair_distances(x: Float[Array, " dim"], num_particles: int, space: int) -> Float[Array, " pairs"]:
    """Return the distance of every pair: what no symmetry but an exchange of particles changes."""
    return jnp.sqrt(squared_pair_distances(x, num_particles, space))


def _lennard_jones(squared: Float[Array, " pairs"]) -> Float[Array, " pairs"]:
    core = CORE**2
    safe = jnp.maximum(squared, core)
    cubed = safe**-3.0
    # Of the straight line only the part below the core is not zero.
    slope = 6.0 * (core**-4.0 - core**-7.0)
    return cubed**2 - 2.0 * cubed + slope * jnp.minimum(squared - core, 0.0)


def dw4() -> DoubleWellParticles:
    """Return DW-4: four particles in the plane, a double well in every distance (Köhler et al. 2020)."""
    return DoubleWellParticles()


def lj13() -> LennardJones:
    """Return LJ-13: thirteen particles in space, at the strength of the usual reference draws."""
    return LennardJones()


class Phi4(Known):
    """The scalar field of lattice physics on a periodic square of `side^2` sites, `log q = -S`.

    `S = sum over sites of (1 - 2 lam) phi^2 + lam phi^4 - 2 kappa phi (phi_right + phi_down)`.
    At `lam = 0.022` the field orders near `kappa = 0.27`: below it one broad mode, above it two,
    related by `phi -> -phi`. No exact sampler is known.
    """

    kappa: Float[Array, ""]
    lam: Float[Array, ""]
    side: int = eqx.field(static=True)

    def __init__(self, side: int = 8, kappa: float = 0.25, lam: float = 0.022):
        """Make a lattice; `lam` above 0 keeps the density proper for every `kappa`."""
        self.side = check_count(side, "side", at_least=2)
        self.dim, self.name = self.side**2, "phi4"
        self.kappa = jnp.asarray(kappa, float)
        self.lam = jnp.asarray(check_positive(lam, "lam"), float)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return minus the action of the field, given row by row."""
        field = x.reshape(self.side, self.side)
        neighbours = jnp.roll(field, -1, axis=0) + jnp.roll(field, -1, axis=1)
        site = (1 - 2 * self.lam) * field**2 + self.lam * field**4
        return jnp.sum(2 * self.kappa * field * neighbours - site)


def phi4(side: int = 8, kappa: float = 0.25, lam: float = 0.022) -> Phi4:
    """Return a scalar field on `side^2` sites, by default a little short of its ordered phase."""
    return Phi4(side, kappa, lam)
