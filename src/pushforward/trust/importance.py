"""Where a sampler's density is known: importance weights, how heavy their tail is, and `log Z`."""

from typing import Any

import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.frame import InFrame
from pushforward.host import generator, log_densities, pulled, sampled
from pushforward.latents import Mixture
from pushforward.networks import Invertible
from pushforward.recipe.table import Judge
from pushforward.sampler import Sampler
from pushforward.trust.line import Line
from pushforward.trust.settings import LIMITS


def importance_lines(key: Key[Array, ""], sampler: Any, target: Target, num_draws: int) -> list[Line]:
    """Return the line of a sampler whose density is known, and of others none.

    It is that of a square map of a mixture latent: one trained by exact KL, hence one-to-one.
    """
    if not isinstance(sampler, Sampler) or not isinstance(sampler.latent, Mixture):
        return []
    latent, network = sampler.latent, sampler.network
    if latent.dim != sampler.dim or not (sampler.dim <= LIMITS.max_dim or isinstance(network, Invertible)):
        return []
    z = sampled(generator(key), latent, num_draws)
    height = pulled(InFrame(target, sampler.frame), network, z, Judge().weighed_draws)
    return [weights_line(height - log_densities(latent, z))]


def weights_line(log_weights: Float[np.ndarray, " n"]) -> Line:
    """Return the line on log importance weights `log q(x) - log p(x)` of draws `x ~ p`."""
    w = np.asarray(log_weights, np.float64)
    n = len(w)
    scaled = np.exp(w - w.max()) if np.isfinite(w.max()) else np.zeros(n)
    share = float(scaled.sum() ** 2 / max(np.sum(scaled**2), 1e-300) / n)
    log_z = float(w.max() + np.log(scaled.mean())) if scaled.any() else float("-inf")
    error = float(scaled.std() / max(scaled.mean(), 1e-300) / np.sqrt(n))
    k = pareto_shape(w)
    return Line(
        name="importance",
        title="Importance weights",
        statistic=k,
        measure="Pareto shape k of the largest weights",
        null=f"at most {LIMITS.max_k} for an efficiency that can be believed; 0 or less for bounded weights",
        breached=k > LIMITS.max_k or share < LIMITS.min_share,
        grave=share < LIMITS.min_share,
        found=f"Effective share {share:.1%}, k = {k:.2f}, log Z = {log_z:.4f} +- {error:.4f}.",
        advice="The target has mass where the sampler draws too seldom: its tails are too thin there.",
        details={"k": k, "efficiency": share, "log_z": log_z, "log_z_error": error, "n": n},
    )


def pareto_shape(log_weights: Float[np.ndarray, " n"]) -> float:
    """Return the shape of a generalised Pareto law fitted to the largest weights.

    By the estimator of Zhang and Stephens (2009), with the weak prior towards 1/2 that Pareto-smoothed
    importance sampling uses. Below 0 the weights are bounded; the k-th moment exists up to `1 / k`.
    """
    w = np.sort(np.asarray(log_weights, np.float64))
    n = len(w)
    count = int(min(0.2 * n, 3.0 * np.sqrt(n)))
    if count < 5 or not np.isfinite(w[-1]):
        return float("inf")
    x = np.exp(w[-count:] - w[-1]) - np.exp(w[-count - 1] - w[-1])
    if x[-1] <= LIMITS.rounding:
        # All weights alike but for rounding: as bounded as can be.
        return -1.0
    x = np.maximum(x, 1e-15)
    grid = 30 + int(np.sqrt(count))
    quartile = x[int(count / 4 + 0.5) - 1]
    theta = 1.0 / x[-1] + (1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3.0 * quartile)
    shape = np.log1p(-theta[:, None] * x).mean(axis=1)
    profile = count * (np.log(-theta / shape) - shape - 1.0)
    weight = np.exp(profile - profile.max())
    best = float(np.sum(theta * weight) / weight.sum())
    k = float(np.log1p(-best * x).mean())
    return (count * k + 10 * 0.5) / (count + 10)
