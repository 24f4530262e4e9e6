"""Mode weights put right by importance sampling of the sampler's own draws: no others are needed."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import Latent, Mixture
from pushforward.objectives.exact_kl import value_and_log_det
from pushforward.training.path import effective_share

MAX_ENTRIES = 2**24
"""Draws times weights that are looked at: what bounds the memory where every coordinate has its own."""

NUM_DRAWS, FEW_DRAWS, FEW_FROM = 65536, 8192, 101
"""Draws that are weighed: fewer from so many dimensions on, where each costs more than it tells."""

PARTS = 8
"""Of the draws that are weighed: the median of their efficiencies is not one wild draw's to decide."""

TRUST_FROM = 0.2
"""Below this efficiency a few draws carry all the weight, and repairing by them does harm."""


class Weighing(NamedTuple):
    """How a sampler with a known density stands to its target."""

    efficiency: Float[Array, ""]
    """Effective sample size of importance sampling from it, as a share: one where it is exact."""
    log_z: Float[Array, ""]


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


def tamed(log_w: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return log weights capped at e^5 times the median: a handful of wild draws must not decide."""
    return jnp.minimum(log_w, jnp.median(log_w) + 5.0)


def enough(dim: int) -> int:
    """Return how many draws are weighed in so many dimensions."""
    return NUM_DRAWS if dim < FEW_FROM else FEW_DRAWS


@eqx.filter_jit
def weigh(
    key: Key[Array, ""], target: Target, latent: Latent, network: Any, num_draws: int | None = None
) -> Weighing:
    """Estimate efficiency and `log Z` by importance sampling."""
    w = log_weights(target, latent, network, latent.sample(key, num_draws or enough(target.dim)))
    return Weighing(usual_share(w), logsumexp(w) - jnp.log(w.size))


def usual_share(log_w: Float[Array, " n"]) -> Float[Array, ""]:
    """Return the effective share of draws, as it usually is: the median over parts of them.

    Where a law has a tail a little heavier than the sampler's, one draw in a hundred thousand may weigh as
    much as a third of all, and a share over all of them compares such draws, not samplers.
    """
    if log_w.size < FEW_DRAWS:
        return effective_share(log_w)
    return jnp.median(jax.vmap(effective_share)(log_w[: log_w.size // PARTS * PARTS].reshape(PARTS, -1)))


@eqx.filter_jit
def repair_weights(
    key: Key[Array, ""], target: Target, latent: Mixture, network: Any, num_steps: int = 10
) -> Mixture:
    """Return the latent with its component weights re-estimated, or as it was if they cannot be trusted.

    Expectation-maximisation on the weights alone: `w_c <- sum_i iw_i r_c(z_i)`, less what the draws of the
    latent themselves are off by, `mean_i r_c(z_i) - w_c` at the start: where the sampler is nearly right,
    that is nearly all of the noise. Of coordinates that are mixtures on their own, each has its weights.
    """
    z = latent.sample(key, min(enough(target.dim), MAX_ENTRIES // latent.weights.size))
    w = log_weights(target, latent, network, z)
    share = jax.nn.softmax(tamed(w))
    logs = jax.lax.map(latent.component_log_densities, z, batch_size=4096) - jnp.log(latent.weights)

    def responsibilities(weights):
        return jax.nn.softmax(logs + jnp.log(weights), axis=-1)

    chance = jnp.mean(responsibilities(latent.weights), axis=0) - latent.weights

    def body(_, weights):
        new = jnp.maximum(jnp.tensordot(share, responsibilities(weights), 1) - chance, 1e-3 * weights)
        return new / jnp.sum(new, axis=-1, keepdims=True)

    weights = jax.lax.fori_loop(0, num_steps, body, latent.weights)
    good = (effective_share(w) > TRUST_FROM) & jnp.all(jnp.isfinite(weights))
    return eqx.tree_at(lambda law: law.weights, latent, jnp.where(good, weights, latent.weights))
