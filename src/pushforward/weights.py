"""Importance weights: the one currency in which a sampler is judged."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.latents import Latent
from pushforward.objectives.exact_kl import value_and_log_det


def effective_share(log_weights: Float[Array, " n"]) -> Float[Array, ""]:
    """Return the effective sample size of weighted draws, as a share of their number."""
    w = log_weights
    return jnp.exp(2.0 * logsumexp(w) - logsumexp(2.0 * w)) / w.size


@eqx.filter_jit
def log_weights(target: Target, latent: Latent, network: Any, z: Float[Array, "n dim"]) -> Float[Array, " n"]:
    """Return `log q(g(z)) + log |det dg/dz| - log p(z)`: the log importance weights of the draws `g(z)`.

    Right where the map is one-to-one, as one trained by `ExactKL` from the identity is at least locally.
    """

    def one(latent_point):
        x, log_det = value_and_log_det(network, latent_point)
        return target.log_density(x) + log_det - latent.log_density(latent_point)

    w = jax.lax.map(one, z, batch_size=4096)
    return jnp.where(jnp.isfinite(w), w, -jnp.inf)
