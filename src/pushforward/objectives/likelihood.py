"""Pulls towards draws: a buffer's, by energy distance or likelihood, and the sampler's own, weighted."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from pushforward.checks import check_count
from pushforward.networks.invertible import Invertible, log_density
from pushforward.objectives.base import Latents, Network, Objective, OneKey, Scalar, View, Wants, push


class Buffered(Objective):
    """A pull towards draws of a buffer.

    It sees what KL cannot (a mode the sampler has dropped), and inherits the buffer's errors: let its weight
    go to zero before training ends.
    """

    wants = Wants("nothing")

    buffer: Float[Array, "m dim"]
    batch_size: int = eqx.field(static=True, default=1024)

    def __check_init__(self):
        check_count(self.batch_size, "batch_size")

    def some(self, key: OneKey, count: int) -> Float[Array, "n dim"]:
        """Return that many draws of the buffer, any of them more than once."""
        return self.buffer[jax.random.randint(key, (count,), 0, self.buffer.shape[0])]


class Forward(Buffered):
    """`2 E|x - b| - E|x - x'|` against `batch_size` draws `b` of a buffer: zero pull when the laws agree."""

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the energy distance up to the buffer's own term."""
        x = push(network, z)
        # A draw's distance to itself is no part of E|x - x'|; counting those zeros would pull inwards.
        own = _mean_distance(x, x) * len(x) / max(len(x) - 1, 1)
        return 2.0 * _mean_distance(x, self.some(key, self.batch_size)) - own


class Likelihood(Buffered):
    """`- E log p(b)` over draws `b` of a buffer, `p` the law of the sampler's draws.

    It is `KL(buffer || p)` up to a constant.
    """

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return minus the mean log density of some of the buffer's draws."""
        return -jnp.mean(_log_densities(network, view, self.some(key, min(self.batch_size, len(z)))))


class Reweighted(Objective):
    """`KL(q || p)` by importance sampling from `p` itself, times the effective share of the draws.

    Reverse KL leaves out the thin end of a law, where it costs nothing; this wants it in proportion. Its
    noise is that of the weights, hence the factor: where few draws carry all the weight, they do not lead.
    """

    wants = Wants("nothing")

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return minus the weighted mean log density of the draws; they and the weights are held fixed."""
        latent = view.latent
        assert latent is not None
        assert isinstance(network, Invertible)

        def draw(point):
            x, log_det = network.value_and_log_det(point)
            return x, view.target.log_density(x) + log_det - latent.log_density(point)

        x, w = jax.lax.stop_gradient(jax.vmap(draw)(z))
        w = jnp.where(jnp.isfinite(w), w, -jnp.inf)
        # Truncated at sqrt(n) times their mean, which bounds the noise of a single draw (Ionides, 2008).
        w = jnp.minimum(w, logsumexp(w) - 0.5 * jnp.log(w.size))
        share = jax.nn.softmax(w)
        effective = 1.0 / (jnp.sum(share**2) * w.size)
        # On average the unweighted draws pull nowhere: taken off, nothing is left where the weights are even.
        return -effective * jnp.sum((share - 1.0 / w.size) * _log_densities(network, view, x))


def _log_densities(network: Network, view: View, x: Float[Array, "n dim"]) -> Float[Array, " n"]:
    """Return the log density of each point under the sampler."""
    assert isinstance(network, Invertible)
    return jax.vmap(lambda point: log_density(network, view.latent, point))(x)


def _mean_distance(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Scalar:
    # By matrix products; the small floor keeps the root's gradient finite where two points coincide.
    squared = jnp.sum(x**2, 1)[:, None] + jnp.sum(y**2, 1)[None] - 2.0 * x @ y.T
    return jnp.mean(jnp.sqrt(jnp.maximum(squared, 0.0) + 1e-6))
