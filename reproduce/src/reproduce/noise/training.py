"""KL training of a map with noise at its end: no score net, and no Jacobian either."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pushforward.objectives.base import Network, Objective, View, Wants, push
from reproduce.noise.head import NoiseHead


class SemiImplicitKL(Objective):
    """`E[ log 1/n sum_j p(u_i | z_j) - log q(u_i) ]`, the sum over the latents of the whole batch.

    An upper bound of `KL(p || q)` up to a constant, since a draw's own latent is in its sum; it falls to
    the divergence as the batch grows (semi-implicit variational inference). How large a batch must be for
    that grows with the dimension and with how small the noise is: for polishing in a few dimensions.
    """

    wants = Wants("nothing")

    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return the bound."""
        del key
        if not isinstance(network, NoiseHead):
            raise TypeError(
                f"`network` must be a NoiseHead, whose draws are normal given their latents; "
                f"got {type(network).__name__}. Wrap it: `noise_head(key, network)`."
            )
        u = push(network, z)
        inner = z[:, : network.map_size]
        centres, sigmas = jax.vmap(network.network)(inner), jax.vmap(network.sigma)(inner)

        def log_density(point: Float[Array, " dim"]) -> Float[Array, ""]:
            white = (point - centres) / sigmas
            logs = -0.5 * jnp.sum(white**2, axis=1) - jnp.sum(jnp.log(sigmas), axis=1)
            constant = 0.5 * point.size * jnp.log(2.0 * jnp.pi) + jnp.log(centres.shape[0])
            return logsumexp(logs) - constant

        return jnp.mean(jax.vmap(log_density)(u) - jax.vmap(view.target.log_density)(u))
