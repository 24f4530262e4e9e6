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


def usual_share(log_w: Float[Array, " n"], parts: int) -> Float[Array, ""]:
    """Return the effective share of draws as it usually is: the median over parts of them.

    Where a law has a tail a little heavier than the sampler's, one draw in a hundred thousand may weigh as
    much as a third of all, and a share over all of them compares such draws, not samplers.
    """
    return jnp.median(jax.vmap(effective_share)(log_w[: log_w.size // parts * parts].reshape(parts, -1)))


def capped(log_w: Float[Array, " n"], nats: float) -> Float[Array, " n"]:
    """Return log weights capped so many nats above the median: a handful of wild draws must not decide."""
    return jnp.minimum(log_w, jnp.median(log_w) + nats)


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
