"""Targets with an exact sampler, from 2 to 50 dimensions; and ways to be wrong, each as a sampler of one."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import ExactTarget
from pushforward.targets import (
    Gaussian,
    Mixture,
    correlated_gaussian,
    funnel,
    funnel_nd,
    gaussian,
    gmm40,
    mog2,
    rosenbrock,
    squiggle,
)
from reproduce.targets import StudentTMixture, donut, student_t


def modes(dim: int, weights: tuple[float, ...], name: str) -> Mixture:
    """Return a unit Gaussian at the origin and others eight away from it, along a coordinate each."""
    means = np.zeros((len(weights), dim))
    means[np.arange(1, len(weights)), np.arange(len(weights) - 1)] = 8.0
    return Mixture(
        np.array(weights), means, np.broadcast_to(np.eye(dim), (len(weights), dim, dim)), name=name
    )


def pair_correlation(dim: int, correlation: float = 0.3) -> Gaussian:
    """Return a standard Gaussian but for one correlation, between its first two coordinates."""
    covariance = np.eye(dim)
    covariance[0, 1] = covariance[1, 0] = correlation
    return Gaussian(np.zeros(dim), covariance, name=f"pair_correlation_{dim}d")


CASES: dict[str, Callable[[], ExactTarget]] = {
    "gaussian": gaussian,
    "mog2": mog2,
    "rosenbrock": rosenbrock,
    "donut": donut,
    "funnel": funnel,
    "squiggle": squiggle,
    "student_t_2d": lambda: student_t(5.0, dim=2),
    "gmm40": gmm40,
    "three_modes_2d": lambda: modes(2, (0.45, 0.45, 0.1), "three_modes_2d"),
    "pair_correlation_2d": lambda: pair_correlation(2),
    "funnel_nd": funnel_nd,
    "correlated_gaussian": lambda: correlated_gaussian(jax.random.key(0)),
    "three_modes_10d": lambda: modes(10, (0.45, 0.45, 0.1), "three_modes_10d"),
    "student_t_20d": lambda: student_t(5.0, dim=20),
    "gaussian_50d": lambda: gaussian(50),
    "two_modes_50d": lambda: modes(50, (0.5, 0.5), "two_modes_50d"),
    "pair_correlation_50d": lambda: pair_correlation(50),
}
"""By name: how each is built."""

EXACT_TARGETS = (
    *("gaussian", "mog2", "rosenbrock", "donut", "funnel", "student_t_2d", "gmm40"),
    *("funnel_nd", "correlated_gaussian", "three_modes_10d", "student_t_20d", "gaussian_50d"),
)
"""Those on which exact draws are checked many times over."""


Draw = Callable[[Key[Array, ""], int], Float[Array, "n dim"]]

EXACT = "exact"
PILOT = 100_000  # draws from which a standard deviation is taken where none is known


def _sds(target: ExactTarget) -> np.ndarray:
    if target.covariance is not None:
        return np.sqrt(np.diag(np.asarray(target.covariance, np.float64)))
    return np.asarray(target.sample(jax.random.key(0), PILOT), np.float64).std(axis=0)


def dropped_mode(target: ExactTarget) -> Draw:
    """Leave out components that hold a tenth of the mass: the last ones."""
    assert isinstance(target, Mixture)
    weights = np.asarray(target.weights, np.float64)
    lost = np.cumsum(weights[::-1])[::-1] < 0.1 + 1e-6
    return _reweighted(target, np.where(lost, 1e-12, weights))


def wrong_weights(target: ExactTarget) -> Draw:
    """Give the first of two equal components 70 % of the draws."""
    assert isinstance(target, Mixture)
    return _reweighted(target, np.array([0.7, 0.3]))


def _reweighted(target: Mixture, weights: np.ndarray) -> Draw:
    covariances = np.asarray(jnp.einsum("kij,klj->kil", target.scales, target.scales), np.float64)
    return Mixture(weights, np.asarray(target.means), covariances).sample


def wide(target: ExactTarget) -> Draw:
    """Make the first coordinate's standard deviation 10 % too large."""
    return _scaled(target, 1.1)


def narrow(target: ExactTarget) -> Draw:
    """Make the first coordinate's standard deviation 10 % too small."""
    return _scaled(target, 0.9)


def _scaled(target: ExactTarget, factor: float) -> Draw:
    assert target.mean is not None
    middle = target.mean[0]

    def draw(key, n):
        x = target.sample(key, n)
        return x.at[:, 0].set(middle + factor * (x[:, 0] - middle))

    return draw


def shifted(target: ExactTarget) -> Draw:
    """Shift the first coordinate by a tenth of its standard deviation."""
    shift = jnp.asarray(0.1 * _sds(target)[0], float)
    return lambda key, n: target.sample(key, n).at[:, 0].add(shift)


def thin_tails(target: ExactTarget) -> Draw:
    """Draw Gaussians of the same mean and covariance in place of Student's t."""
    assert isinstance(target, StudentTMixture)
    assert target.mean is not None
    sds = jnp.asarray(_sds(target), float)
    mean = target.mean
    return lambda key, n: mean + sds * jax.random.normal(key, (n, target.dim))


def no_correlation(target: ExactTarget) -> Draw:
    """Draw every coordinate by itself: right marginals, no correlation."""
    return lambda key, n: jnp.stack(
        [target.sample(k, n)[:, i] for i, k in enumerate(jax.random.split(key, target.dim))], axis=1
    )


def duplicated(target: ExactTarget) -> Draw:
    """Draw half as many points, and each twice."""

    def draw(key, n):
        key_draws, key_order = jax.random.split(key)
        half = target.sample(key_draws, n // 2)
        return jax.random.permutation(key_order, jnp.concatenate([half, half]))

    return draw


DEFECTS: dict[str, tuple[Callable[[ExactTarget], Draw], tuple[str, ...]]] = {
    "dropped mode of 10 %": (dropped_mode, ("three_modes_2d", "gmm40", "three_modes_10d")),
    "weights 70:30 for 50:50": (wrong_weights, ("mog2", "two_modes_50d")),
    "one sd 10 % too large": (wide, ("gaussian", "rosenbrock", "donut", "student_t_20d", "gaussian_50d")),
    "one sd 10 % too small": (narrow, ("gaussian", "rosenbrock", "donut", "student_t_20d", "gaussian_50d")),
    "one mean 0.1 sd off": (shifted, ("gaussian", "rosenbrock", "funnel", "student_t_20d", "gaussian_50d")),
    "Gaussian tails for t5": (thin_tails, ("student_t_2d", "student_t_20d")),
    "no correlation for 0.3": (no_correlation, ("pair_correlation_2d", "pair_correlation_50d")),
    "half of the draws twice": (duplicated, ("gaussian", "gmm40", "gaussian_50d")),
}
"""By name: the defect, and the targets on which it makes sense."""


def sampler(method: str, target: ExactTarget) -> Draw:
    """Return the sampler of a row: exact, or with one defect."""
    return target.sample if method == EXACT else DEFECTS[method][0](target)
