"""The target seen through a map: where the map is nearly right, it looks like the map's own latent law.

Particles that move badly in the target's coordinates (along a neck, around a bend) move well in these. So a
map fitted to draws gives better draws, and these a better map.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.latents import Latent
from pushforward.networks import Coupled
from pushforward.recipe.table import Maps


class PulledBack(Target):
    """`log q(g(z)) + log |det dg/dz|`: the target in the coordinates of `g`'s latents."""

    target: Target
    network: Coupled

    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(self, target: Target, network: Coupled):
        """See `target` through `network`."""
        self.target, self.network = target, network
        self.dim, self.name = target.dim, target.name

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log density of one latent."""
        u, log_det = self.network.value_and_log_det(x)
        return self.target.log_density(u) + log_det


def _log_p(network: Coupled, latent: Latent, point: Float[Array, " dim"]) -> Float[Array, ""]:
    z, log_det = network.inverse_and_log_det(point)
    return latent.log_density(z) - log_det


@eqx.filter_jit
def log_likelihood(
    network: Coupled, latent: Latent, frame: Frame, draws: Float[Array, "m dim"]
) -> Float[Array, ""]:
    """Return the mean log density, outside of the frame, of `draws` from outside of it."""

    def one(x):
        u = frame.inverse(x)
        return _log_p(network, latent, u) - frame.log_det(u)

    return jnp.mean(jax.lax.map(one, draws, batch_size=1024))


@eqx.filter_jit
def fit_coupled(
    key: Key[Array, ""],
    draws: Float[Array, "m dim"],
    latent: Latent,
    num_steps: int,
    numbers: Maps,
    begin: Coupled | eqx.Partial,
) -> Coupled:
    """Return the map whose draws are likeliest to be `draws`: maximum likelihood.

    It is sought from `begin` on, which is a map, or makes one of a key.
    """
    key_network, key_steps = jax.random.split(key)
    network = begin(key_network) if isinstance(begin, eqx.Partial) else begin
    optimiser = optax.chain(
        optax.clip_by_global_norm(numbers.clip),
        optax.adam(optax.cosine_decay_schedule(numbers.learning_rate, num_steps)),
    )

    def loss(network, rows):
        return -jnp.mean(jax.vmap(lambda row: _log_p(network, latent, row))(rows))

    def step(carry, key_step):
        network, state = carry
        rows = draws[jax.random.randint(key_step, (numbers.batch_size,), 0, draws.shape[0])]
        slopes = eqx.filter_grad(loss)(network, rows)
        updates, state = optimiser.update(slopes, state)
        return (eqx.apply_updates(network, updates), state), None

    carry = network, optimiser.init(eqx.filter(network, eqx.is_inexact_array))
    (network, _), _ = jax.lax.scan(step, carry, jax.random.split(key_steps, num_steps))
    return network
