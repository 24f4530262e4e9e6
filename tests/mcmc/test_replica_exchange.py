"""Particles in the right places with the wrong shares get the right ones by replica exchange, and not without."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.mcmc.exchange import exchanged as exchanged_by
from pushforward.operations import one_by_one
from pushforward.recipe.table import Fallback

KEY = jax.random.key(0)
LEFT = 0.8
WALK = Fallback()


def exchanged(key, target, draws, deadline=float("inf")):
    return exchanged_by(key, target, draws, WALK, deadline)


class TwoWells(Target):
    """Two normals, eight of the wider's widths apart; the left has four fifths of the mass."""

    left: float = 0.5
    right: float = 0.5
    dim: int = eqx.field(static=True, default=2)
    name: str = eqx.field(static=True, default="two_wells")

    def log_density(self, x):
        def well(at, width, share):
            away = ((x[0] - at) ** 2 + x[1] ** 2) / width**2
            return jnp.log(share) - 2.0 * jnp.log(width) - 0.5 * away

        return jnp.logaddexp(well(-2.0, self.left, LEFT), well(2.0, self.right, 1.0 - LEFT))


def draws_with(share, left=0.5, right=0.5):
    """Draws with so much of their mass in the left well."""
    rng = np.random.default_rng(0)
    x, chosen = rng.normal(size=(32_768, 2)), rng.random((32_768, 1)) < share
    x = np.where(chosen, left * x + [-2.0, 0.0], right * x + [2.0, 0.0])
    return jnp.asarray(x, jnp.float32)


@pytest.fixture(scope="module")
def halves():
    return draws_with(0.5)


def test_replicas_find_the_right_shares(halves):
    assert np.mean(np.asarray(halves)[:, 0] < 0) == pytest.approx(0.5, abs=0.02)
    x = np.asarray(exchanged(KEY, TwoWells(), halves))
    assert x.shape == (WALK.ladders * WALK.crowd * WALK.spread, 2)
    left = x[:, 0] < 0
    # One draw from each of 64 ladders has a standard error of 0.05, and there are many more.
    assert left.mean() == pytest.approx(LEFT, abs=0.08)
    assert x[left].std(axis=0) == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("widths", [(0.1, 0.4), (0.4, 0.1)])
def test_right_shares_of_unlike_wells_stay_right(widths):
    """Replicas that begin at the draws in all temperatures end with too much of the mass in the narrow well."""
    x = np.asarray(exchanged(KEY, TwoWells(*widths), draws_with(LEFT, *widths)))
    assert np.mean(x[:, 0] < 0) == pytest.approx(LEFT, abs=0.1)


def test_targets_that_are_looked_at_one_point_at_a_time_walk_too():
    matrix = jnp.eye(2) + 0.5

    def log_density(matrix, x):
        return -0.5 * jnp.sum(jnp.linalg.solve(matrix, x) * x)

    target = one_by_one(Target.from_log_density(eqx.Partial(log_density, matrix), dim=2))
    draws = jax.random.normal(KEY, (300, 2))
    x = np.asarray(exchanged(KEY, InFrame(target, Frame.identity(2)), draws))
    # 512 positions of 64 chains: a spread to a fifth or so. And they have moved.
    assert x.std(axis=0) == pytest.approx(np.sqrt([1.5, 1.5]), rel=0.6)
    assert not np.isin(x[:, 0], np.asarray(draws)[:, 0]).any()


def test_without_time_the_draws_are_kept(halves):
    np.testing.assert_array_equal(exchanged(KEY, TwoWells(), halves, deadline=0.0), halves)


def test_few_draws_make_few_ladders(halves):
    assert len(exchanged(KEY, TwoWells(), halves[:300])) == 2 * WALK.crowd * WALK.spread


def test_what_is_kept_comes_of_the_second_half_of_the_walk():
    """Draws of one well alone: what is kept must have forgotten them, though the walk's first steps have not."""
    x = np.asarray(exchanged(KEY, TwoWells(), draws_with(0.0)))
    assert np.mean(x[:, 0] < 0) == pytest.approx(LEFT, abs=0.1)
