"""Mode weights by importance sampling: right where they were wrong, and left alone where they were right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, NormalMixture
from pushforward.networks import modulated
from pushforward.recipe import reweight
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.table import Recipe
from pushforward.targets import Mixture
from pushforward.weights import usual

RECIPE = Recipe()
NUM_DRAWS, FEW_DRAWS, PARTS = RECIPE.reweight.num_draws, RECIPE.judge.weighed_draws, RECIPE.reweight.parts

MEANS = np.array([[-3.0, 0.0], [1.0, 1.0], [3.0, -1.0]])
FACTORS = np.array([np.eye(2), 0.7 * np.eye(2), [[1.0, 0.0], [0.5, 0.6]]])
TRUTH = np.array([0.6, 0.3, 0.1])


def reweighed(start, truth=TRUTH, factors=FACTORS, seed=0):
    target = Mixture(truth, MEANS, np.einsum("kij,klj->kil", factors, factors))
    latent = NormalMixture(jnp.asarray(start, float), jnp.asarray(MEANS, float), jnp.asarray(FACTORS, float))
    network = modulated(jax.random.key(1), 2, width=4, depth=1)  # starts as the identity
    law = Approximation(Frame.identity(2), latent, network)
    return np.asarray(reweight.reweighed(np.random.default_rng(seed), target, law, RECIPE).latent.weights)


@pytest.mark.parametrize("start", [[1 / 3, 1 / 3, 1 / 3], [0.5, 0.2, 0.3]])
def test_wrong_weights_are_put_right(start):
    np.testing.assert_allclose(reweighed(start), TRUTH, atol=0.006)


def test_right_weights_do_not_suffer_from_the_draws_that_confirm_them():
    """Counting components of as many draws would be off by ten times as much."""
    errors = [np.abs(reweighed(TRUTH, seed=seed) - TRUTH).max() for seed in range(3)]
    assert max(errors) < 0.1 * np.sqrt(0.25 / NUM_DRAWS)


def test_weights_are_left_alone_where_importance_sampling_is_poor():
    start = [0.2, 0.2, 0.6]
    np.testing.assert_array_equal(reweighed(start, factors=0.05 * FACTORS), np.float32(start))


def test_every_coordinate_of_independent_mixtures_is_put_right():
    means, scales = jnp.tile(jnp.array([-2.0, 2.0]), (6, 1)), jnp.full((6, 2), 0.5)
    truth = jnp.tile(jnp.array([0.15, 0.85]), (6, 1))
    wrong = truth + jnp.linspace(-0.04, 0.04, 6)[:, None] * jnp.array([1.0, -1.0])
    wells = IndependentMixtures(truth, means, scales)
    target = Target.from_log_density(wells.log_density, dim=6)
    latent = IndependentMixtures(wrong, means, scales)
    law = Approximation(Frame.identity(6), latent)
    found = reweight.reweighed(np.random.default_rng(0), target, law, RECIPE).latent
    assert isinstance(found, IndependentMixtures)
    # Five standard errors of a share of 65,536 draws, most of which the correction takes off again.
    np.testing.assert_allclose(found.weights, truth, atol=5 * np.sqrt(0.15 * 0.85 / NUM_DRAWS))


def test_one_wild_draw_does_not_decide_on_the_efficiency_but_many_do():
    even = np.zeros(NUM_DRAWS)
    wild = even.copy()
    wild[5] = np.log(NUM_DRAWS)
    assert usual(even, PARTS) == pytest.approx(1.0)
    assert usual(wild, PARTS) == pytest.approx(1.0)
    # Of all draws together the share would be six in a hundred thousand.
    many = even.copy()
    many[:: NUM_DRAWS // 64] = np.log(NUM_DRAWS)
    assert usual(many, PARTS) < 0.01
    # A look during training weighs too few to be parted.
    assert usual(wild[:FEW_DRAWS], 1) < 0.01
