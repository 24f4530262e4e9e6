"""Importance weights: the one currency in which a sampler is judged."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float


def effective_share(log_weights: Float[Array, " n"]) -> Float[Array, ""]:
    """Return the effective sample size of weighted draws, as a share of their number, in a program."""
    return jnp.exp(2.0 * logsumexp(log_weights) - logsumexp(2.0 * log_weights)) / log_weights.size


def log_sum(logs: np.ndarray) -> Any:
    """Return `log sum exp` along the last axis."""
    most = np.maximum(logs.max(axis=-1, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):
        return np.asarray(most[..., 0] + np.log(np.exp(logs - most).sum(axis=-1)))


def effective(log_weights: np.ndarray) -> float:
    """Return the effective share of weighted draws."""
    if not np.isfinite(log_weights.max()):
        return 0.0
    w = np.exp(log_weights - log_weights.max())
    return float(w.sum() ** 2 / (w**2).sum() / len(w))


def usual(log_weights: np.ndarray, parts: int) -> float:
    """Return the effective share as it usually is: the median over parts of the draws.

    Where a law has a tail a little heavier than the sampler's, one draw in a hundred thousand may weigh as
    much as a third of all, and a share over all of them compares such draws, not samplers.
    """
    return float(np.median([effective(each) for each in np.array_split(log_weights, parts)]))


def chosen_by(rng: np.random.Generator, log_weights: np.ndarray, count: int | None = None) -> np.ndarray:
    """Return rows chosen in proportion to weights, as evenly as can be (systematic resampling)."""
    w = np.exp(log_weights - log_weights.max())
    count = len(w) if count is None else count
    at = (np.arange(count) + rng.random()) / count
    return np.minimum(np.searchsorted(np.cumsum(w / w.sum()), at), len(w) - 1)
