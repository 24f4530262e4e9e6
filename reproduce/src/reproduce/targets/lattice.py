import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.checks import check_count, check_positive
from reproduce.targets.fields import Known


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
