"""Importance weights of draws whose density is estimated, and what follows from them."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count, check_key
from pushforward.trust.importance import pareto_shape
from pushforward.trust.settings import LIMITS

Z95 = 1.959964


@dataclass(frozen=True)
class Evidence:
    """Importance weights of a sampler's draws, and what follows from them."""

    draws: Float[np.ndarray, "n dim"]
    log_weights: Float[np.ndarray, " n"]
    """`log q(x) - log p(x)`, the second estimated; the weights themselves are unbiased."""
    num_latents: int

    @property
    def elbo(self) -> tuple[float, float]:
        """`E[log q(x) - log p(x)]`, at most `log Z`, and its standard error."""
        w = self.log_weights
        if not np.isfinite(w).all():
            # Some draws have no target density at all, and the divergence is infinite.
            return float("-inf"), float("inf")
        return float(w.mean()), float(w.std(ddof=1) / np.sqrt(len(w)))

    @property
    def log_z(self) -> float:
        """The log of the mean weight: `log Z` of the target, as its log density is written."""
        return float(np.logaddexp.reduce(self.log_weights) - np.log(len(self.log_weights)))

    @property
    def log_z_error(self) -> float:
        """The standard error of `log_z`, as far as the weights that were seen tell it."""
        share = np.exp(self.log_weights - self.log_weights.max())
        return float(share.std(ddof=1) / share.mean() / np.sqrt(len(share)))

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % interval of `log Z`; to be believed where `k` is at most 0.7."""
        return self.log_z - Z95 * self.log_z_error, self.log_z + Z95 * self.log_z_error

    @property
    def efficiency(self) -> float:
        """The effective share of the draws: one for an exact sampler."""
        w = self.log_weights
        return float(np.exp(2 * np.logaddexp.reduce(w) - np.logaddexp.reduce(2 * w)) / len(w))

    @property
    def k(self) -> float:
        """The Pareto shape of the largest weights; above 0.7 no average over them can be believed."""
        return pareto_shape(self.log_weights)

    def resample(self, key: Key[Array, ""], num_samples: int) -> Float[np.ndarray, "n dim"]:
        """Return draws chosen by weight: what the sampler gets wrong, above all mode weights, put right.

        Systematic resampling: a draw of twice the weight is chosen twice as often. More than
        `efficiency * n` of them are mostly repeats.
        """
        check_key(key)
        num_samples = check_count(num_samples, "num_samples")
        if not self.k <= LIMITS.max_k:
            raise ValueError(
                f"the weights cannot be believed: Pareto shape {self.k:.2f}, above {LIMITS.max_k}. Train the "
                "sampler further, or give its head more noise, before resampling."
            )
        share = np.exp(self.log_weights - np.logaddexp.reduce(self.log_weights))
        places = (np.arange(num_samples) + float(jax.random.uniform(key))) / num_samples
        rows = np.minimum(np.searchsorted(np.cumsum(share), places), len(share) - 1)
        return self.draws[rows]
