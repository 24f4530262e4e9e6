"""The data of the study's models: one set that everybody knows, and three made from a seed."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

SCHOOLS_Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SCHOOLS_SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])  # Rubin's eight schools

NUM_COUNTIES, NUM_HOUSES = 85, 919


class Radon(NamedTuple):
    """Houses in counties of very unequal size: as many of both as in the study of Minnesota."""

    county: Int[np.ndarray, " houses"]
    floor: Float[np.ndarray, " houses"]
    log_radon: Float[np.ndarray, " houses"]


def radon() -> Radon:
    """Make data with the shape of the radon study: sizes from one house to about a hundred."""
    rng = np.random.default_rng(85)
    # Heavy-tailed sizes; every county has a house.
    shares = np.exp(1.2 * rng.normal(size=NUM_COUNTIES))
    sizes = 1 + rng.multinomial(NUM_HOUSES - NUM_COUNTIES, shares / shares.sum())
    county = np.repeat(np.arange(NUM_COUNTIES), sizes)
    floor = (rng.uniform(size=NUM_HOUSES) < 0.17).astype(float)
    intercepts = 1.46 + 0.33 * rng.normal(size=NUM_COUNTIES)
    log_radon = intercepts[county] - 0.69 * floor + 0.76 * rng.normal(size=NUM_HOUSES)
    return Radon(county, floor, log_radon)


class Curve(NamedTuple):
    """Noisy values of a smooth function."""

    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]


def curve() -> Curve:
    """Make forty noisy values of a function of one variable, at uneven places."""
    rng = np.random.default_rng(40)
    x = np.sort(rng.uniform(0.0, 10.0, size=40))
    y = np.sin(x) + 0.5 * np.cos(0.5 * x) + 0.3 * rng.normal(size=40)
    return Curve(x, y)


def two_groups() -> Float[np.ndarray, " n"]:
    """Make 150 values of two groups that overlap, a third of them in the lower one."""
    rng = np.random.default_rng(150)
    low = rng.uniform(size=150) < 0.35
    return np.where(low, -1.2 + 0.6 * rng.normal(size=150), 1.5 + 1.0 * rng.normal(size=150))
