"""Maximum likelihood, for maps whose inverse is known: on given draws, and on the sampler's own, weighted."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count
from pushforward.networks.invertible import log_density
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
        return -jnp.mean(jax.vmap(lambda x: log_density(network, latent, x))(self.buffer[rows]))


class Reweighted(Objective):
    """`KL(q || p)` by importance sampling from `p` itself, times the effective share of the draws.

    Reverse KL leaves out the thin end of a law, where it costs nothing; this wants it in proportion. Its
    noise is that of the weights, hence the factor: where few draws carry all the weight, they do not lead.
    """

    wants = Wants("nothing")

    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return minus the weighted mean log density of the draws; they and the weights are held fixed."""
        del key
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

        log_p = jax.vmap(lambda point: log_density(network, latent, point))(x)
        # On average the unweighted draws pull nowhere: taken off, nothing is left where the weights are even.
        return -effective * jnp.sum((share - 1.0 / w.size) * log_p)
