"""Marginals of latents by importance sampling: ends put right where they were short, and nothing else moved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pushforward.base import Target
from pushforward.latents import IndependentMixtures, NormalMixture
from pushforward.networks import Identity
from pushforward.recipe.judge import weigh
from pushforward.recipe.reweight import is_standard, reweigh_marginals
from pushforward.recipe.state import standard
from pushforward.recipe.table import Recipe

LEVELS = np.array([0.005, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.995])


def reweighed(log_density, dim, seed=0):
    target = Target.from_log_density(log_density, dim=dim)
    return target, reweigh_marginals(
        np.random.default_rng(seed), target, standard(dim), Identity(dim), Recipe()
    )


def quantiles(law, coordinate):
    """Return quantiles of one coordinate, from its distribution function on a grid."""
    x = np.linspace(-8.0, 8.0, 16001)
    parts = stats.norm.cdf(
        (x[:, None] - np.asarray(law.means[coordinate])) / np.asarray(law.scales[coordinate])
    )
    return np.interp(LEVELS, parts @ np.asarray(law.weights[coordinate], float), x)


def test_ends_that_are_short_are_made_longer():
    """A tenth of the first coordinate is half as wide again: its hundredth draw lies at -2.57, not at -2.33."""

    def log_density(x):
        wide = jnp.logaddexp(
            jnp.log(0.9) + jax.scipy.stats.norm.logpdf(x[0]),
            jnp.log(0.1) + jax.scipy.stats.norm.logpdf(x[0], 0.0, 1.5),
        )
        return wide + jnp.sum(jax.scipy.stats.norm.logpdf(x[1:]))

    target, law = reweighed(log_density, 4)
    assert isinstance(law, IndependentMixtures)
    grid = np.linspace(-8.0, 8.0, 16001)
    exact = np.interp(LEVELS, 0.9 * stats.norm.cdf(grid) + 0.1 * stats.norm.cdf(grid / 1.5), grid)
    assert exact[1] < -2.4
    np.testing.assert_allclose(quantiles(law, 0), exact, atol=0.03)
    np.testing.assert_allclose(quantiles(law, 1), stats.norm.ppf(LEVELS), atol=0.02)
    before, after = (
        weigh(np.random.default_rng(1), target, each, Identity(4), Recipe()).efficiency
        for each in (standard(4), law)
    )
    assert 1.0 - float(after) < 0.3 * (1.0 - float(before))


def test_one_end_alone_and_a_shift():
    """A skewed coordinate: the mass beyond one end only, and a mean that is off."""

    def log_density(x):
        skewed = jax.scipy.stats.norm.logpdf(x[0]) + jax.scipy.special.log_ndtr(0.5 * x[0])
        return skewed + jnp.sum(jax.scipy.stats.norm.logpdf(x[1:]))

    _, law = reweighed(log_density, 4)
    np.testing.assert_allclose(quantiles(law, 0), stats.skewnorm.ppf(LEVELS, 0.5), atol=0.03)


@pytest.mark.parametrize("dim", [4, 60])
def test_right_marginals_hardly_move(dim):
    target, law = reweighed(lambda x: jnp.sum(jax.scipy.stats.norm.logpdf(x)), dim)
    if isinstance(law, IndependentMixtures):
        for i in range(dim):
            np.testing.assert_allclose(quantiles(law, i), stats.norm.ppf(LEVELS), atol=0.01)
    assert float(weigh(np.random.default_rng(1), target, law, Identity(dim), Recipe()).efficiency) > 0.999


def test_marginals_are_left_alone_where_importance_sampling_is_poor():
    _, law = reweighed(lambda x: jnp.sum(jax.scipy.stats.norm.logpdf(x, 0.0, 0.2)), 6)
    assert isinstance(law, NormalMixture)


def test_only_a_standard_normal_has_its_marginals_reweighed():
    assert is_standard(standard(3))
    assert not is_standard(NormalMixture(jnp.ones(1), jnp.ones((1, 3)), jnp.eye(3)[None]))
    assert not is_standard(NormalMixture(jnp.ones(1), jnp.zeros((1, 3)), 2.0 * jnp.eye(3)[None]))
    assert not is_standard(NormalMixture(jnp.full(2, 0.5), jnp.zeros((2, 3)), jnp.stack([jnp.eye(3)] * 2)))
    assert not is_standard(IndependentMixtures(jnp.ones((3, 1)), jnp.zeros((3, 1)), jnp.ones((3, 1))))
