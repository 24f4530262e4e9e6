"""Maximum likelihood on given draws, for maps whose inverse is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count
from pushforward.objectives.base import Invertible, Network, Objective, View, Wants


class Likelihood(Objective):
    """`- E log p(b)` over draws `b` of a buffer, `p` the law of the sampler's draws.

    It is `KL(buffer || p)` up to a constant: it covers all that the buffer holds, and inherits the buffer's
    errors; let its weight go to zero before training ends.
    """

    wants = Wants("nothing")

    buffer: Float[Array, "m dim"]
    batch_size: int = eqx.field(static=True, default=1024)

    def __check_init__(self):
        check_count(self.batch_size, "batch_size")

    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return minus the mean log density of some of the buffer's draws."""
        latent = view.latent
        assert latent is not None
        assert isinstance(network, Invertible)
        rows = jax.random.randint(key, (min(self.batch_size, len(z)),), 0, self.buffer.shape[0])

        def log_p(point):
            origin, log_det = network.inverse_and_log_det(point)
            return latent.log_density(origin) - log_det

        return -jnp.mean(jax.vmap(log_p)(self.buffer[rows]))
