import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from pushforward.metrics import against_exact, floor
from reproduce.metrics.distances import PROTOCOLS, mean_error, sd_ratio
from reproduce.metrics.modes import mode_weight_error, mode_weights
from reproduce.targets import donut

KEY = jax.random.key(0)
CENTRES = jnp.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])


def test_mode_weights_count_nearest_centres():
    draws = jnp.array([[0.1, 0.0], [3.0, 0.1], [5.0, -1.0], [0.5, 3.9]])
    np.testing.assert_allclose(mode_weights(draws, CENTRES), [0.25, 0.5, 0.25])
    np.testing.assert_allclose(mode_weights(draws[1:3], CENTRES), [0, 1, 0])


def test_mode_weight_error_is_the_largest_difference():
    target = targets.mog2()
    draws = jnp.repeat(target.means, jnp.array([8, 2]), axis=0, total_repeat_length=10)
    np.testing.assert_allclose(mode_weight_error(draws, target), 0.3, rtol=1e-6)


def test_mode_weight_error_of_exact_draws_is_counting_noise():
    # Shares of two modes are binomial: E|share - 1/2| = sqrt(1 / (2 pi n)) = 0.0126 at n = 1,000,
    # with sd 0.0095; 40 repeats, 5 standard errors: false failure below 1e-6.
    found = floor(KEY, lambda key, x, target: mode_weight_error(x, target), targets.mog2(), 1000, repeats=40)
    assert abs(found.mean - 0.0126) < 5 * 0.0095 / np.sqrt(40)


def test_targets_without_modes_are_refused():
    draws = donut().sample(KEY, 10)
    with pytest.raises(TypeError, match=r"must know its modes.*Donut does not"):
        mode_weight_error(draws, donut())


@pytest.mark.parametrize("make", [targets.gaussian, targets.rosenbrock, targets.squiggle])
def test_moments_of_exact_draws(make):
    # N(0, 1/n) each: 5 standard errors, below 1e-6; the sd of a sample sd is at most 1.5 / sqrt(n)
    # for these laws, whose kurtosis is below 9.
    target, n = make(), 10_000
    draws = target.sample(KEY, n)
    assert jnp.all(jnp.abs(mean_error(draws, target)) < 5 / np.sqrt(n))
    assert jnp.all(jnp.abs(sd_ratio(draws, target) - 1) < 7.5 / np.sqrt(n))


def test_moments_are_in_units_of_the_truth_and_signed():
    target = targets.rosenbrock()
    draws = target.sample(KEY, 10_000)
    shifted = target.mean + 1.5 * (draws - target.mean) + jnp.array([0.0, -2 * np.sqrt(3)])
    np.testing.assert_allclose(mean_error(shifted, target), [0, -2], atol=0.08)
    np.testing.assert_allclose(sd_ratio(shifted, target), [1.5, 1.5], rtol=0.06)


def test_reference_draws_serve_as_well_as_known_moments():
    target = targets.gaussian()
    draws, trusted = target.sample(KEY, 1000), target.sample(jax.random.key(1), 100_000)
    np.testing.assert_allclose(mean_error(draws, trusted), mean_error(draws, target), atol=0.02)
    np.testing.assert_allclose(sd_ratio(draws, trusted), sd_ratio(draws, target), rtol=0.02)


def test_a_target_without_moments_is_refused():
    plain = targets.gaussian()
    plain = type(plain).from_log_density(lambda x: -jnp.sum(x**2), dim=2, name="bowl")
    with pytest.raises(ValueError, match=r"knows its `mean` and `covariance`"):
        mean_error(jnp.ones((3, 2)), plain)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("metric", sorted(PROTOCOLS))
def test_every_protocol_has_a_reproducible_floor(metric):
    target = targets.mog2()
    first = floor(KEY, PROTOCOLS[metric], target, 100, repeats=3)
    assert first == floor(KEY, PROTOCOLS[metric], target, 100, repeats=3)
    assert first != floor(jax.random.key(1), PROTOCOLS[metric], target, 100, repeats=3)
    assert np.isfinite(first.mean)
    assert first.sd > 0


def test_selection_is_the_lowest_of_the_checkpoints():
    target = targets.gaussian()
    one = floor(KEY, "ksd_imq_v", target, 50, repeats=4, checkpoints=1)
    assert one == floor(KEY, "ksd_imq_v", target, 50, repeats=4)
    assert floor(KEY, "ksd_imq_v", target, 50, repeats=4, checkpoints=9).mean < one.mean


def test_a_floor_may_be_of_a_protocol_of_ones_own():
    def halved(key, draws, target):
        return against_exact(
            key, draws, target, distance=lambda key, x, y: jnp.mean(x - y), transform=jnp.tanh
        )

    found = floor(KEY, halved, targets.gaussian(), 400, repeats=20)
    assert abs(found.mean) < 6 * found.sd / np.sqrt(20)


def test_what_a_floor_refuses():
    target = targets.gaussian()
    with pytest.raises(ValueError, match=r"`metric` must be one of.*Did you mean 'sliced_w2'"):
        floor(KEY, "sliced_w", target, 100)
    with pytest.raises(ValueError, match=r"`repeats` must be an integer of at least 2; got 1"):
        floor(KEY, "sliced_w2", target, 100, repeats=1)
