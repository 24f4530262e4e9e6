"""Targets with an exact sampler, from 2 to 50 dimensions: one basin and many, light tails and heavy."""

from collections.abc import Callable

import jax
import numpy as np

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
from reproduce.targets import donut, student_t


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

EXACT = (
    *("gaussian", "mog2", "rosenbrock", "donut", "funnel", "student_t_2d", "gmm40"),
    *("funnel_nd", "correlated_gaussian", "three_modes_10d", "student_t_20d", "gaussian_50d"),
)
"""Those on which exact draws are checked many times over."""
