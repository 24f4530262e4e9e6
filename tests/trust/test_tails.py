"""Walks outward: quiet on exact draws, and not where the end of a bent ridge is cut off."""

import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.trust.tails import tails_lines


def chain(x):
    return -0.5 * (x[0] ** 2 + ((x[1] - x[0] ** 2) / 0.3) ** 2 + ((x[2] - x[1] ** 2) / 0.3) ** 2)


def exact(n):
    rng = np.random.default_rng(0)
    x = [rng.normal(size=n)]
    for _ in range(2):
        x.append(x[-1] ** 2 + 0.3 * rng.normal(size=n))
    return np.stack(x, axis=1)


@pytest.mark.parametrize(("cut", "missing"), [(np.inf, 0.0), (2.0, 0.0455)])
def test_a_chain_of_squares_without_its_far_end_is_seen(cut, missing):
    # A normal coordinate beyond two deviations: 4.6 %, and all of the far end of its fourth power.
    target, x = Target.from_log_density(chain, dim=3), exact(10_000)
    (line,) = tails_lines(np.random.default_rng(1), target, x[np.abs(x[:, 0]) < cut])
    assert line.breached == (missing > 0)
    assert line.grave == (missing > 0)
    assert line.statistic == pytest.approx(missing, abs=0.01)
    assert line.details["followed"] >= 4


def test_heavy_and_parted_tails_raise_no_alarm():
    rng = np.random.default_rng(3)
    x = rng.standard_cauchy((10_000, 3))
    (line,) = tails_lines(rng, Target.from_log_density(lambda x: -jnp.sum(jnp.log1p(x**2)), dim=3), x)
    assert not line.breached
    assert line.details["followed"] > 0
