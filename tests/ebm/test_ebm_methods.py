"""Schedules, objectives and metrics against closed forms: one pixel is enough for that."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from reproduce.metrics.frechet import fid, kid
from reproduce.rivals.annealed_langevin import Start, anneal, schedule
from reproduce.studies.ebm.kinds import Teacher
from reproduce.studies.ebm.noise import levels, noisy
from reproduce.studies.ebm.recipes import Recipe
from reproduce.studies.ebm.steps import (
    CRITIC_LEVELS,
    Levels,
    Rules,
    SamplerState,
    critic_step,
    fisher_surrogate,
    kl_surrogate,
    sampler_step,
    seen,
)


class Normal(eqx.Module):
    """`N(0, width^2)` in every pixel, with its exact scores under noise."""

    width: float

    def noisy_score(self, x, sigma):
        return -x / (self.width**2 + sigma**2)


@pytest.mark.parametrize(("evaluations", "mixing"), [(50, 12.0), (50, 4.6), (250, 12.0), (2, 12.0)])
def test_a_schedule_leaves_on_the_image_the_noise_of_the_next_level(evaluations, mixing):
    plan = schedule(evaluations, 0.3, 3.0, mixing)
    assert len(plan.sigmas) == evaluations
    assert plan.sigmas[0] == pytest.approx(3.0)
    assert plan.sigmas[-1] == pytest.approx(0.3)
    assert (plan.shares[-1], plan.noises[-1]) == (1.0, 0.0)
    left = ((1 - plan.shares[:-1]) * plan.sigmas[:-1]) ** 2 + plan.noises[:-1] ** 2
    np.testing.assert_allclose(np.sqrt(left), plan.sigmas[1:], rtol=1e-5)
    with pytest.raises(ValueError, match="evaluations"):
        schedule(1, 0.3, 3.0, mixing)


def test_late_mixing_is_of_low_noise_alone():
    plain = schedule(100, 0.3, 3.0, 4.6)
    late = schedule(100, 0.3, 3.0, 4.6, late_mixing=30.0, late_from=0.8)
    low = plain.sigmas <= 0.8
    np.testing.assert_array_equal(late.shares[~low], plain.shares[~low])
    np.testing.assert_allclose(late.shares[low][:-1], 0.3, rtol=1e-6)
    left = ((1 - late.shares[:-1]) * late.sigmas[:-1]) ** 2 + late.noises[:-1] ** 2
    np.testing.assert_allclose(np.sqrt(left), late.sigmas[1:], rtol=1e-5)
    with pytest.raises(ValueError, match="late_mixing"):
        schedule(100, 0.3, 3.0, 4.6, late_mixing=-1.0, late_from=0.8)


def test_annealing_an_exact_score_gives_the_denoised_law():
    """Draws of `N(0, 4)` under noise 0.3, denoised: `N(0, 4^2 / (4 + 0.09))`."""
    start = jnp.sqrt(4.0 + 9.0) * jax.random.normal(jax.random.key(0), (4000, 1))
    draws = np.asarray(anneal(jax.random.key(1), Normal(2.0), start, schedule(100, 0.3, 3.0, 12.0)))
    # Four standard errors of a variance of 4,000 draws, and what 100 levels are off.
    assert draws.var() == pytest.approx(16 / 4.09, rel=4 * np.sqrt(2 / 4000) + 0.02)


def test_a_start_has_the_moments_of_the_images():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(4000, 3)) @ np.diag([2.0, 1.0, 0.5]) + np.array([1.0, 0.0, -1.0])
    draws = np.asarray(Start.of(images, rank=2).sample(jax.random.key(0), 20_000, 0.5))
    np.testing.assert_allclose(draws.mean(axis=0), [1, 0, -1], atol=0.1)
    np.testing.assert_allclose(draws.var(axis=0), [4.25, 1.25, 0.25], rtol=0.1)


def test_noise_levels_cover_their_range():
    found = np.asarray(levels(jax.random.key(0), 64, 0.3, 3.0))
    edges = 0.3 * 10 ** (np.arange(65) / 64)
    assert ((edges[:-1] <= found * 1.0001) & (found <= edges[1:] * 1.0001)).all()
    x = jnp.ones((8, 2, 2, 1))
    noised, eps, sigma = noisy(jax.random.key(1), x, 0.3, 3.0)
    np.testing.assert_allclose(noised, x + sigma * eps, rtol=1e-6)


WIDE, SHIFT, SIGMA = 1.5, 0.7, 1.0
RANGE = Levels(SIGMA, SIGMA * (1 + 1e-6))


def score(x):
    """The sampler's noisy draws, `N(SHIFT, WIDE^2 + SIGMA^2)`: its score times the noise level."""
    return -SIGMA * (x - SHIFT) / (WIDE**2 + SIGMA**2)


def slope(x):
    """The target `N(0, 1)` under noise: minus its score times the noise level."""
    return SIGMA * x / (1 + SIGMA**2)


def correction(x):
    """What the sampler's score is more than the target's."""
    return score(x) + slope(x)


def gradient(surrogate, recipe, n=200_000):
    """Return the derivative of a surrogate by location and log scale of a normal sampler."""
    z = jax.random.normal(jax.random.key(3), (n, 1, 1, 1))
    net = correction if recipe.corrects else score

    def loss(theta):
        return surrogate(jax.random.key(4), theta[0] + jnp.exp(theta[1]) * z, net, slope, recipe, RANGE)

    return np.asarray(jax.jit(jax.grad(loss))(jnp.array([SHIFT, np.log(WIDE)])))


@pytest.mark.parametrize("corrects", [True, False])
def test_the_kl_surrogate_has_the_gradient_of_the_divergence(corrects):
    """`KL(N(m, v + s^2) || N(0, 1 + s^2))` has derivatives `m / (1 + s^2)` and `v (1/(1+s^2) - 1/(v+s^2))`."""
    found = gradient(kl_surrogate, Recipe(steps=1, balanced=False, corrects=corrects))
    v, one = WIDE**2, 1 + SIGMA**2
    wanted = SIGMA**2 * np.array([SHIFT / one, v * (1 / one - 1 / (v + SIGMA**2))])
    np.testing.assert_allclose(found, wanted, rtol=0.03)


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_lift_weighs_noise_levels_by_a_power_of_them(sigma):
    x, levels = jnp.ones((4, 2, 2, 1)), Levels(sigma, sigma * (1 + 1e-6))

    def slopes(lift):
        recipe = Recipe(steps=1, lift=lift)
        return jax.grad(lambda x: kl_surrogate(jax.random.key(0), x, correction, slope, recipe, levels))(x)

    np.testing.assert_allclose(slopes(2.0), sigma**2 * slopes(0.0), rtol=1e-4)


@pytest.mark.parametrize("corrects", [True, False])
def test_the_fisher_surrogate_moves_a_sampler_towards_its_target(corrects):
    """The signs of the Fisher divergence's own derivatives, and nothing left to do at the target itself."""
    recipe = Recipe(objective="fisher", steps=1, corrects=corrects)
    found = gradient(fisher_surrogate, recipe)
    assert found[0] > 0.02
    assert found[1] > 0.02
    z = jax.random.normal(jax.random.key(5), (200_000, 1, 1, 1))

    def at_home(m):
        net = jnp.zeros_like if corrects else (lambda x: -slope(x))
        return fisher_surrogate(jax.random.key(6), m + z, net, slope, recipe, RANGE)

    assert abs(float(jax.jit(jax.grad(at_home))(0.0))) < 0.01


def test_fid_of_normal_features_is_the_distance_of_their_moments():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(50_000, 3))
    b = rng.normal(size=(50_000, 3)) * np.array([2.0, 1.0, 1.0]) + np.array([0.0, 3.0, 0.0])
    assert fid(a, b) == pytest.approx(9 + 1, rel=0.03)
    assert fid(a, a) == pytest.approx(0, abs=1e-8)


def test_kid_is_unbiased_and_agrees_with_its_definition():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(7, 2)), rng.normal(size=(5, 2)) + 1.0

    def k(x, y):
        return (x @ y / 2 + 1) ** 3

    direct = (
        np.mean([k(x, y) for i, x in enumerate(a) for j, y in enumerate(a) if i != j])
        + np.mean([k(x, y) for i, x in enumerate(b) for j, y in enumerate(b) if i != j])
        - 2 * np.mean([k(x, y) for x in a for y in b])
    )
    assert kid(a, b) == pytest.approx(direct)
    many = [kid(rng.normal(size=(40, 2)), rng.normal(size=(40, 2))) for _ in range(200)]
    assert abs(np.mean(many)) < 4 * np.std(many) / np.sqrt(200)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (np.zeros((1, 3)), np.zeros((4, 3)), "two images"),
        (np.zeros((4, 3)), np.zeros((4, 2)), "one classifier"),
        (np.full((4, 3), np.nan), np.zeros((4, 3)), "finite"),
    ],
)
def test_features_that_cannot_be_compared(first, second, words):
    for metric in (fid, kid):
        with pytest.raises(ValueError, match=words):
            metric(first, second)


def test_a_critic_sees_images_moved_and_in_noise():
    x = jnp.zeros((400, 8, 8, 1)).at[:, 3, 3].set(100.0)
    found = np.asarray(seen(jax.random.key(0), x))[..., 0]
    place = np.stack(np.unravel_index(found.reshape(400, -1).argmax(axis=1), (8, 8)), axis=1)
    assert set(map(tuple, place)) == {(i, j) for i in range(1, 6) for j in range(1, 6)}
    noise = np.where(found > 50, 0.0, found).std(axis=(1, 2))
    assert 0.7 * CRITIC_LEVELS.low < noise.min() < 1.4 * CRITIC_LEVELS.low
    assert 0.8 * CRITIC_LEVELS.high < noise.max() < 1.3 * CRITIC_LEVELS.high


class Flat(eqx.Module):
    """A sampler of grey images: all latents give the same one."""

    level: jax.Array
    latent: int = eqx.field(static=True, default=1)

    def __call__(self, z):
        return jnp.broadcast_to(self.level, (4, 4, 1))


class Brightness(eqx.Module):
    """A critic that sees how bright an image is, and no more."""

    slope: jax.Array
    offset: jax.Array

    def __call__(self, x, kind):
        return self.slope * x.mean() + self.offset


@pytest.mark.quick_compilation
def test_a_critic_pulls_a_sampler_towards_the_teachers_images():
    recipe = Recipe(objective="pull", steps=1, batch=16, pull=1.0)
    rules = Rules(optax.sgd(0.02), optax.sgd(1.0), optax.sgd(0.0))
    nets = Flat(jnp.asarray(0.5)), Brightness(jnp.zeros(()), jnp.zeros(()))
    optimisers = tuple(rule.init(net) for rule, net in zip(rules, (*nets, None), strict=True))

    @eqx.filter_jit
    def step(key, state, teacher):
        state, _ = critic_step(key, state, teacher, recipe, rules)
        return sampler_step(key, state, lambda x: x, recipe, rules, Levels(0.3, 3.0), None)[0]

    for grey in (50, 200):
        state = SamplerState(nets[0], *nets, None, None, None, optimisers, jnp.zeros((), jnp.int32))
        for i in range(20):
            key = jax.random.fold_in(jax.random.key(2), i)
            state = step(key, state, Teacher(jnp.full((20, 4, 4), grey, jnp.uint8), jnp.zeros(20, int)))
        moved, wanted = float(state.generator.level) - 0.5, grey / 255 - 0.5
        assert 0.05 * abs(wanted) < moved * np.sign(wanted) < 1.5 * abs(wanted)
