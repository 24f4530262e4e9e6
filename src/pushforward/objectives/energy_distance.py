"""A pull towards the draws of a buffer, by energy distance."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.checks import check_count
from pushforward.objectives.base import Latents, Network, Objective, OneKey, Scalar, View, Wants, push


class Forward(Objective):
    """`2 E|x - b| - E|x - x'|` against `batch_size` draws `b` of a buffer: zero pull when the laws agree.

    It sees what KL cannot (a mode the sampler has dropped), and inherits the buffer's errors: let its weight
    go to zero before training ends.
    """

    wants = Wants("nothing")

    buffer: Float[Array, "m dim"]
    batch_size: int = eqx.field(static=True, default=1024, converter=lambda n: check_count(n, "batch_size"))

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the energy distance up to the buffer's own term."""
        x = push(network, z)
        some = self.buffer[jax.random.randint(key, (self.batch_size,), 0, len(self.buffer))]
        # A draw's distance to itself is no part of E|x - x'|; counting those zeros would pull inwards.
        own = _mean_distance(x, x) * len(x) / max(len(x) - 1, 1)
        return 2.0 * _mean_distance(x, some) - own


def _mean_distance(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Scalar:
    # By matrix products; the small floor keeps the root's gradient finite where two points coincide.
    squared = jnp.sum(x**2, 1)[:, None] + jnp.sum(y**2, 1)[None] - 2.0 * x @ y.T
    return jnp.mean(jnp.sqrt(jnp.maximum(squared, 0.0) + 1e-6))
