"""Importance weights: the one currency in which a sampler is judged."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float


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
