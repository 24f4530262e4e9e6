"""The frame and the mixture that stand for draws: bent where tails are heavy, and no finer than draws can tell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.host import log_densities
from pushforward.latents import NormalMixture, standard
from pushforward.recipe.law import frame_from_draws, hangs_together, split, stand_in
from pushforward.recipe.mixtures import fit_independent, fit_mixture
from pushforward.recipe.table import Law, Recipe
from reproduce.targets import student_t


def test_many_modes_in_many_dimensions_are_fitted_from_their_peaks():
    rng = np.random.default_rng(1)
    dim, modes = 20, 24
    centres = 10.0 * rng.normal(size=(modes, dim))
    x = centres[rng.integers(modes, size=4096)] + rng.normal(size=(4096, dim))
    mixture = fit_mixture(rng, x, modes, centres=centres)
    # The entropy of the law itself, less what 4,096 rows cannot say.
    exact = np.log(modes) + 0.5 * dim * np.log(2 * np.pi * np.e)
    fresh = centres[rng.integers(modes, size=4096)] + rng.normal(size=(4096, dim))
    assert log_densities(mixture, fresh).mean() > -exact - 0.6


def test_columns_are_fitted_each_on_its_own():
    rng = np.random.default_rng(5)
    x = np.stack([np.where(rng.random(8192) < 0.2, -4.0, 3.0) + 0.3 * rng.normal(size=8192),
                  rng.normal(size=8192)], axis=1)  # fmt: skip
    law = fit_independent(x, Law())
    left = np.asarray(law.weights)[0][np.asarray(law.means)[0] < 0].sum()
    assert left == pytest.approx(0.2, abs=0.02)
    # The entropy of both columns; one normal a column would be a nat short in the first.
    truth = -(np.log(0.3) + 2 * 0.5 * np.log(2 * np.pi * np.e)) + 0.2 * np.log(0.2) + 0.8 * np.log(0.8)
    fresh = np.stack([np.where(rng.random(8192) < 0.2, -4.0, 3.0) + 0.3 * rng.normal(size=8192),
                      rng.normal(size=8192)], axis=1)  # fmt: skip
    assert log_densities(law, fresh).mean() == pytest.approx(truth, abs=0.04)


def test_held_out_particles_are_never_fitted_to():
    particles = np.arange(101)
    u = np.tile(particles, 4)[:, None]
    train, held_out = (set(np.asarray(part)[:, 0].tolist()) for part in split(u, 4))
    assert not train & held_out
    assert train | held_out == set(particles.tolist())


def test_modes_far_apart_are_not_taken_for_a_heavy_tail():
    """A small mode far out lengthens the quantiles; in a bent frame neither mode would be normal."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4 * 1024, 4))
    x[rng.random(len(x)) < 0.08] += 12.0
    peaks = np.array([[0.0] * 4, [12.0] * 4])
    recipe = Recipe().replace(**{"annealing.components": 8})
    law = stand_in(jax.random.key(7), x, recipe, peaks)
    assert np.all(np.asarray(law.frame.bend) == 0.0)
    assert law.latent.weights.size == 2
    # Planted: by the quantiles alone the frame is bent.
    assert np.any(np.asarray(frame_from_draws(jnp.asarray(x, float)).bend) > 0)


def test_frame_bends_for_heavy_tails_and_only_for_them():
    heavy = frame_from_draws(student_t(2.0).sample(jax.random.key(0), 20_000))
    light = frame_from_draws(jax.random.normal(jax.random.key(1), (20_000, 1)))
    assert heavy.bend[0] > 0.3
    assert light.bend[0] == 0.0
    u = jnp.asarray([0.7])
    assert jnp.allclose(heavy.inverse(heavy(u)), u, atol=1e-4)


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_a_chain_of_normals_is_one_mode_and_a_gap_in_it_makes_two(apart):
    """The ends are far from each other, and joined by what lies between."""
    middles = np.arange(6) - 2.5
    middles[3:] += 3.0 * (apart - 1.0)
    means = np.zeros((6, 3))
    means[:, 1] = 2.0 * middles
    law = NormalMixture(*(jnp.asarray(a, float) for a in (np.full(6, 1 / 6), means, np.eye(3)[None])))
    assert hangs_together(law, Law()) == (apart == 1.0)
    assert hangs_together(standard(3), Law())
