"""Sizes that the paper pins down, shapes, and what the energies' forms promise; nothing is trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.networks.images import (
    correction,
    distance_energy,
    generator,
    paper_generator,
    residual_energy,
    small_classifier,
    unet,
    wide_resnet,
)
from pushforward.networks.images.layers import fold, unfold
from pushforward.studies.ebm import PRESETS
from pushforward.studies.ebm.energy import energy_step, start
from pushforward.studies.ebm.plan import count
from pushforward.studies.ebm.recipes import recipe_of
from pushforward.studies.ebm.sampler import build, fresh
from pushforward.studies.ebm.steps import Levels, sampler_step, score_step
from pushforward.targets import ImageEnergy

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("build", "size"),
    [
        (lambda: residual_energy(KEY), 9_060_483),
        (lambda: paper_generator(KEY), 12_592_385),
        (lambda: wide_resnet(KEY), 10_961_082),
    ],
)
def test_the_papers_networks_have_the_papers_sizes(build, size):
    assert count(eqx.filter_eval_shape(build)) == size


def test_shapes():
    image = jax.ShapeDtypeStruct((32, 32, 1), jnp.float32)
    assert eqx.filter_eval_shape(lambda x: residual_energy(KEY)(x), image).shape == ()
    assert eqx.filter_eval_shape(lambda x: wide_resnet(KEY).features(x), image).shape == (512,)
    assert eqx.filter_eval_shape(lambda x: small_classifier(KEY)(x), image).shape == (10,)
    assert eqx.filter_eval_shape(lambda x: unet(KEY)(x), image).shape == (32, 32, 1)
    z = jax.ShapeDtypeStruct((5, 128), jnp.float32)
    assert eqx.filter_eval_shape(lambda z: paper_generator(KEY).images(z), z).shape == (5, 32, 32, 1)
    one = jax.ShapeDtypeStruct((128,), jnp.float32)
    assert eqx.filter_eval_shape(lambda z: generator(KEY, (24, 40))(z), one).shape == (24, 40, 1)


def test_fold_and_unfold_are_inverse_and_keep_neighbours_together():
    h = jnp.arange(4 * 6 * 3.0).reshape(4, 6, 3)
    assert fold(h).shape == (2, 3, 12)
    np.testing.assert_array_equal(unfold(fold(h)), h)
    np.testing.assert_array_equal(fold(h)[0, 0], h[:2, :2].reshape(-1))


def test_a_generator_needs_sides_that_can_be_halved_three_times():
    with pytest.raises(ValueError, match="multiples of 8"):
        generator(KEY, (28, 28))


def test_a_generator_jumps_where_a_latent_whose_sign_it_sees_changes_it():
    net = generator(KEY, (16, 16), latent=4, stem=16, widths=(8, 6, 4), signs=2)
    assert net.latent == 4
    z = jax.random.normal(KEY, (4,))

    def jump(i: int) -> float:
        return float(jnp.max(jnp.abs(net(z.at[i].set(1e-6)) - net(z.at[i].set(-1e-6)))))

    assert min(jump(0), jump(1)) > 0.01
    assert max(jump(2), jump(3)) < 1e-4


def test_a_frozen_denoiser_gives_a_cone():
    """With `D` constant, `f = sqrt(d) sqrt(|x - c|^2 + 1)`; a correction starts at zero."""
    energy = distance_energy(KEY, (2,))
    zero = jax.tree.map(jnp.zeros_like, energy)
    target = ImageEnergy(zero, (4, 4), 0.5)

    @jax.jit
    def everything(x):
        flat, two = x.reshape(-1), jnp.asarray(2.0)
        noisy, other = target.noisy_score(flat, two), target.at(2.0).score(flat)
        nothing = correction(energy.denoiser)(x)
        return (
            zero(x),
            jax.grad(zero)(x),
            nothing,
            target.score(flat),
            noisy,
            other,
            target.denoise(flat, two),
        )

    x = np.random.default_rng(0).normal(size=(4, 4, 1)).astype(np.float32)
    value, slope, nothing, score, noisy, other, clean = map(np.asarray, everything(x))
    away = x - 0.13
    assert value == pytest.approx(4 * np.sqrt(np.sum(away**2) + 1), rel=1e-5)
    np.testing.assert_allclose(slope, 4 * away / np.sqrt(np.sum(away**2) + 1), rtol=1e-4)
    np.testing.assert_allclose(nothing, 0.0, atol=1e-6)
    np.testing.assert_allclose(score, -slope.reshape(-1) / 0.5, rtol=1e-5)
    np.testing.assert_allclose(noisy, -slope.reshape(-1) / 2.0, rtol=1e-5)
    np.testing.assert_allclose(other, noisy, rtol=1e-5)
    np.testing.assert_allclose(clean, x.reshape(-1) - 2.0 * slope.reshape(-1), rtol=1e-4)
    with pytest.raises(ValueError, match="sigma"):
        ImageEnergy(zero, (4, 4), -1.0)


@pytest.mark.parametrize("method", ["kl", "fisher"])
def test_steps_of_the_papers_preset_can_be_traced(method):
    """Every network of the paper's sizes in every step there is, without the minutes a step would take."""
    settings, levels = PRESETS["paper"], Levels(0.3, 3.0)
    recipe = recipe_of(method, settings)

    def steps(pixels):
        state, rule = start(KEY, settings, (32, 32))
        state, info = energy_step(KEY, state, pixels, settings, rule)
        nets, rules = fresh(build(KEY, settings, (32, 32)), recipe)
        nets, fitted = score_step(KEY, nets, jax.grad(state.energy), recipe, rules, levels)
        return info, fitted, sampler_step(KEY, nets, jax.grad(state.energy), recipe, rules, levels, None)[1]

    found = eqx.filter_eval_shape(steps, jax.ShapeDtypeStruct((200, 32, 32), jnp.uint8))
    assert all(leaf.shape == () for leaf in jax.tree.leaves(found))
