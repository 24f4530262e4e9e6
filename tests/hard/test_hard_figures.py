"""The study's own metrics on exact draws, where they must be small, and on planted errors, where not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from reproduce.studies.hard.figures import Pool, asked, distance, shares, units_of
from reproduce.targets import dw4, many_well, random_target, student_t_mixture

KEY = jax.random.key(0)
N = 20_000


def figures(target, ask, draws, truth=None):
    found = asked(target, (ask,))
    return {name: float(protocol(KEY, draws, truth or target)) for name, protocol in found.items()}


def test_mode_shares_of_overlapping_modes_are_the_weights():
    target = targets.Mixture([0.2, 0.3, 0.5], [[0.0], [1.5], [8.0]], [[[1.0]], [[0.5]], [[1.0]]])
    x = target.sample(KEY, N)
    # A share is a mean of numbers in [0, 1]: five standard errors are below 0.018.
    np.testing.assert_allclose(shares(x, target), [0.2, 0.3, 0.5], atol=0.018)
    good = figures(target, "modes", x)
    assert good["modes_found"] == 3
    assert good["mode_weight_error"] < 0.018
    # Planted error: the third mode dropped.
    bad = figures(target, "modes", x[x[:, 0] < 5])
    assert bad["modes_found"] == 2
    assert bad["mode_weight_error"] > 0.4
    assert bad["emc"] < good["emc"]


def test_emc_is_one_for_even_shares():
    target = targets.gmm40()
    assert figures(target, "modes", target.sample(KEY, N))["emc"] > 0.999
    few = target.sample(KEY, N)
    assert figures(target, "modes", few[few[:, 0] > 0])["emc"] < 0.95


def test_shares_of_a_student_mixture():
    target = student_t_mixture()
    np.testing.assert_allclose(shares(target.sample(KEY, N), target), target.weights, atol=0.018)


def test_neck_figures():
    target = targets.funnel_nd(3)
    x = target.sample(KEY, N)
    good = figures(target, "neck", x)
    # Standard errors: 0.005 of the sd, 0.027 of the extreme quantiles.
    assert good["neck_sd_error"] < 0.025
    assert good["neck_quantile_error"] < 0.13
    bad = figures(target, "neck", x[np.asarray(x[:, 0]) > -3.0])
    assert bad["neck_sd_error"] > 0.1
    assert bad["neck_quantile_error"] > 0.5


def test_well_marginals():
    target = many_well(4)
    x = target.sample(KEY, N)
    good = figures(target, "wells", x)
    assert max(good.values()) < 0.03
    # Planted error: every draw of one well moved to the other side.
    bad = figures(target, "wells", x.at[:, 0].set(jnp.abs(x[:, 0])))
    assert bad["tv_wells"] > 0.1
    assert figures(target, "wells", x.at[:, 3].mul(1.3))["tv_normals"] > 0.05


def test_moment_figures():
    target = targets.correlated_gaussian(jax.random.key(0), 5)
    x = target.sample(KEY, N)
    good = figures(target, "moments", x)
    assert good["mean_error_95"] <= good["mean_error_max"] < 5 / np.sqrt(N)
    assert good["sd_error_95"] <= good["sd_error_max"] < 0.03
    sd = np.sqrt(np.asarray(target.covariance)[1, 1])
    bad = figures(target, "moments", x.at[:, 1].multiply(1.2).at[:, 1].add(0.5 * sd))
    assert bad["sd_error_max"] > 0.15
    assert bad["mean_error_max"] > 0.4


def test_particles_are_judged_by_what_symmetries_leave_alone():
    target = dw4()
    rng = np.random.default_rng(0)
    corners = 2.0 * np.array([[1, 1], [1, -1], [-1, -1], [-1, 1.0]])
    pool = (corners + rng.normal(0, 0.3, (1200, 4, 2))).astype(np.float32)
    truth = Pool(target, pool[:800].reshape(800, 8))
    same = pool[400:, [2, 0, 3, 1]][..., ::-1].reshape(800, 8)
    good = figures(target, "particles", jnp.asarray(same), truth)
    bad = figures(target, "particles", jnp.asarray(1.1 * same), truth)
    assert good["tv_distances"] < 0.1 < bad["tv_distances"]
    assert good["energy_error"] < 0.2 < bad["energy_error"]
    protocol = distance(target, ("particles",), None)["sliced_w2"]
    # Turned and exchanged draws are as near as draws can be; others are not.
    assert float(protocol(KEY, jnp.asarray(same), truth)) < 0.15
    assert float(protocol(KEY, jnp.asarray(1.1 * same), truth)) > 0.2


def test_a_pool_is_sampled_without_repeats_and_knows_its_moments():
    values = np.arange(20, dtype=np.float32).reshape(10, 2)
    pool = Pool(targets.gaussian(), values)
    drawn = np.asarray(pool.sample(KEY, 10))
    np.testing.assert_array_equal(np.sort(drawn[:, 0]), values[:, 0])
    np.testing.assert_allclose(pool.mean, values.mean(0))
    with pytest.raises(ValueError, match="at most 10"):
        pool.sample(KEY, 11)


def test_the_halves_of_a_pool_are_other_chains_and_as_far_apart_as_other_draws():
    target = targets.gaussian()
    pool = Pool(target, np.asarray(target.sample(KEY, 4000)))
    one, other = pool.halves()
    both = np.concatenate([one.pool, other.pool])
    np.testing.assert_array_equal(np.sort(both[:, 0]), np.sort(np.asarray(pool.pool)[:, 0]))
    protocol = distance(target, (), None)["sliced_w2"]

    def mean_of(draws_from, truth):
        keys = jax.random.split(jax.random.key(5), 60)
        return np.mean(
            [float(protocol(jax.random.fold_in(k, 1), draws_from.sample(k, 1500), truth)) for k in keys]
        )

    exact = mean_of(target, target)
    # A mean of 60 has an error of about 5 %; two choices from one pool are nearer by a fifth.
    assert mean_of(one, other) == pytest.approx(exact, rel=0.25)
    assert mean_of(pool, pool) < 0.9 * mean_of(one, other)


def test_units_make_coordinates_alike():
    target = random_target(6)
    x = units_of(target.sample(KEY, 4000))(target.sample(jax.random.key(1), 4000))
    low, high = np.quantile(np.asarray(x), [0.16, 0.84], axis=0)
    # Quantiles of 4,000 draws, twice: a standard error of about 3 %.
    np.testing.assert_allclose(high - low, 2.0, rtol=0.15)
