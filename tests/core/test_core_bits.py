"""Random numbers of our own: the cipher is JAX's, the laws are right, and the mode does not matter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pushforward import bits
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Normal, NormalMixture, Uniform
from pushforward.networks import Identity
from pushforward.sampler import Sampler

KEY = jax.random.key(11)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_folding_in_is_that_of_jax(impl):
    key = jax.random.key(5, impl=impl)
    for data in (0, 1, 2**31, 2**32 - 1):
        found = jax.jit(bits.fold_in)(key, jnp.uint32(data))
        expected = jax.random.fold_in(key, data)
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))


@pytest.fixture(scope="module")
def many():
    u, eps = jax.jit(bits.uniform_and_normal, static_argnums=(1, 2))(KEY, 2**17, 3)
    return np.asarray(u), np.asarray(eps)


def test_laws_are_uniform_and_normal(many):
    """Six Kolmogorov-Smirnov tests, each below 1e-6 by chance once in a million keys."""
    u, eps = many
    assert u.min() >= 0
    assert u.max() < 1
    assert np.isfinite(eps).all()
    for column in range(3):
        assert stats.kstest(u[:, column], "uniform").pvalue > 1e-6
        assert stats.kstest(eps[:, column], "norm").pvalue > 1e-6
    # Planted: five hundredths too wide, and two hundredths of a deviation off.
    assert stats.kstest(1.05 * eps[:, 0], "norm").pvalue < 1e-6
    assert stats.kstest(eps[:, 0] + 0.02, "norm").pvalue < 1e-6


def test_numbers_do_not_depend_on_each_other(many):
    """36 correlations, of neighbours too, within six standard errors: one new key in ten million fails."""
    u, eps = many
    both = np.hstack([u, eps])
    shifted = np.hstack([both[:-1], both[1:]])
    correlations = np.corrcoef(shifted.T)[np.triu_indices(12, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(len(u))
    # And neither do their sizes.
    correlations = np.corrcoef(((both - both.mean(0)) ** 2).T)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(len(u))


def test_a_row_does_not_depend_on_how_many_there_are(many):
    u, eps = bits.uniform_and_normal(KEY, 100, 3)
    np.testing.assert_array_equal(u, many[0][:100])
    np.testing.assert_allclose(eps, many[1][:100], rtol=1e-6)
    assert np.any(bits.uniform_and_normal(jax.random.key(12), 100, 3)[0] != u)


def array(values):
    return jax.device_put(np.asarray(values, np.float32))


def frame():
    rows = ([1.0, -2.0], [0.3, 4.0], [0.0, 0.6], [0.1, -0.2])
    return Frame(*map(array, rows), matrix=array([[1.0, 0.0], [0.5, 2.0]]))


LAWS = {
    "normal": lambda: Normal(2),
    "uniform": lambda: Uniform(2),
    "mixture": lambda: NormalMixture(
        *map(array, ([0.2, 0.8], [[0, 1], [2, -3]], [np.eye(2), 2 * np.eye(2)]))
    ),
    "columns": lambda: IndependentMixtures(
        *map(array, ([[0.2, 0.8]] * 2, [[0, 1], [2, -3]], np.ones((2, 2))))
    ),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("latents", ["iid", "sobol"])
def test_the_same_points_under_64_bits(law, latents):
    """A file's arrays have 32 bits in either mode, and so must its draws, to the last of them."""
    sampler = Sampler(LAWS[law](), Identity(2), frame())
    single = np.asarray(sampler.sample(KEY, 3_000, latents=latents))
    with jax.enable_x64(True):
        double = np.asarray(sampler.sample(KEY, 3_000, latents=latents))
        inside = np.asarray(jax.jit(lambda key: sampler.sample(key, 3_000))(KEY))
    assert double.dtype == np.float32
    np.testing.assert_array_equal(double, single)
    if latents == "iid":
        np.testing.assert_allclose(inside, single, rtol=1e-5, atol=1e-6)
