"""Sizes that the paper pins down, shapes, and what the energies' forms promise; nothing is trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reproduce.images import (
    correction,
    critic,
    distance_energy,
    generator,
    kinds_of,
    paper_generator,
    residual_energy,
    small_classifier,
    unet,
    wide_resnet,
    with_shares,
)
from reproduce.images.layers import fold, unfold
from reproduce.studies.ebm import PRESETS
from reproduce.studies.ebm.energy import energy_step, start
from reproduce.studies.ebm.plan import count
from reproduce.studies.ebm.recipes import recipe_of
from reproduce.studies.ebm.sampler import build, fresh
from reproduce.studies.ebm.steps import Levels, sampler_step, score_step
from reproduce.targets import ImageEnergy

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
    tall = jax.ShapeDtypeStruct((24, 40, 1), jnp.float32)
    assert eqx.filter_eval_shape(lambda x: unet(KEY, shape=(24, 40))(x), tall).shape == (24, 40, 1)
    z = jax.ShapeDtypeStruct((5, 128), jnp.float32)
    assert eqx.filter_eval_shape(lambda z: paper_generator(KEY).images(z), z).shape == (5, 32, 32, 1)
    one = jax.ShapeDtypeStruct((128,), jnp.float32)
    assert eqx.filter_eval_shape(lambda z: generator(KEY, (24, 40))(z), one).shape == (24, 40, 1)


def test_fold_and_unfold_are_inverse_and_keep_neighbours_together():
    h = jnp.arange(4 * 6 * 3.0).reshape(4, 6, 3)
    assert fold(h).shape == (2, 3, 12)
    np.testing.assert_array_equal(unfold(fold(h)), h)
    np.testing.assert_array_equal(fold(h)[0, 0], h[:2, :2].reshape(-1))


def test_sides_must_be_such_that_they_can_be_halved_three_times():
    with pytest.raises(ValueError, match="multiples of 8"):
        generator(KEY, (28, 28))
    with pytest.raises(ValueError, match="multiples of 8"):
        unet(KEY, shape=(28, 32))


def test_the_first_latent_of_a_generator_says_of_which_kind_an_image_is_and_no_more():
    shares = np.array([0.5, 0.0, 0.2, 0.3])
    net = generator(KEY, (16, 16), latent=4, stem=16, widths=(8, 6, 4), kinds=4)
    net = with_shares(net, shares)
    assert net.latent == 4
    z = jax.random.normal(KEY, (20_000, 4))
    found = np.asarray(kinds_of(net, z))
    # Four standard errors of a share of 20,000; a kind without a share is never drawn.
    np.testing.assert_allclose(
        np.bincount(found, minlength=4) / len(z), shares, atol=4 * 0.5 / np.sqrt(len(z))
    )
    assert not (found == 1).any()
    images = np.asarray(jax.vmap(lambda first: net(z[0].at[0].set(first)))(z[:100, 0]))
    for kind in (0, 2, 3):
        alike = images[found[:100] == kind]
        np.testing.assert_array_equal(alike, np.broadcast_to(alike[:1], alike.shape))
        assert np.abs(alike[0] - np.asarray(net.of_kind(jnp.asarray((kind + 2) % 4), z[0, 1:]))).max() > 0.01


def test_a_critic_looks_at_the_kind():
    net = critic(KEY, unet(KEY, (4, 6), shape=(8, 8), middle=4), (8, 8), kinds=3)
    x = jax.random.normal(KEY, (8, 8, 1))
    kinds = jnp.arange(3)
    assert np.ptp(jax.vmap(net, in_axes=(None, 0))(x, kinds)) == 0
    told = eqx.tree_at(lambda c: c.kinds, net, net.kinds.at[2].set(1.0))
    found = np.asarray(jax.vmap(told, in_axes=(None, 0))(x, kinds))
    assert found[0] == found[1] != found[2]


def test_a_frozen_denoiser_gives_a_cone():
    """With `D` constant, `f = sqrt(d) sqrt(|x - c|^2 + 1)`; a correction starts at zero."""
    energy = distance_energy(KEY, (2,), shape=(4, 4), middle=3)
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
