"""Replica exchange against a double well in closed form, whose sides one chain alone does not mix."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.mcmc.replicas import cold_positions
from reproduce.rivals import tempering
from reproduce.targets import double_well


@pytest.fixture(scope="module")
def cold():
    target = double_well()
    algorithm = tempering.algorithm(target, num_chains=32, num_temperatures=5, num_warmup=200, num_leapfrog=4)
    key_init, key_run = jax.random.split(jax.random.key(0))
    state = eqx.filter_jit(algorithm.init)(key_init)
    pieces = []
    for number in range(3):
        first = jnp.asarray(400 * number)
        state, draws, info = cold_positions(algorithm.step, key_run, state, first, 400, 2)
        pieces.append(np.asarray(draws))
    # The first piece is the warm-up.
    return target, np.concatenate(pieces[1:]), {k: np.asarray(v) for k, v in info.items()}, state


def test_both_wells_get_their_weight(cold):
    target, draws, info, _ = cold
    assert 0.4 < info["acceptance"].mean() < 0.95
    assert info["exchanges"].mean() > 0.1
    right = np.mean(draws[..., 0] > 0, axis=0)
    weight = 1 - float(jnp.interp(0.0, target.law.nodes, target.law.cdf))
    # Five standard errors by the spread between independent ladders.
    error = right.std(ddof=1) / np.sqrt(len(right))
    assert abs(right.mean() - weight) < 5 * error
    assert error < 0.03
    # Planted error: even weights would have been seen.
    assert abs(0.5 - right.mean()) > 5 * error


def test_moments_of_the_other_coordinate(cold):
    _, draws, _, _ = cold
    means = draws[..., 1].mean(axis=0)
    assert abs(means.mean()) < 5 * means.std(ddof=1) / np.sqrt(len(means))
    assert draws[..., 1].std() == pytest.approx(1.0, abs=0.05)


def test_values_go_with_their_positions(cold):
    target, _, _, state = cold
    expected = jax.vmap(jax.vmap(target.log_density))(state.positions)
    np.testing.assert_allclose(state.values, expected, rtol=1e-4, atol=1e-4)


def test_arguments():
    with pytest.raises(ValueError, match="coldest_share"):
        tempering.algorithm(double_well(), coldest_share=1.0)
    with pytest.raises(ValueError, match="num_temperatures"):
        tempering.algorithm(double_well(), num_temperatures=1)
