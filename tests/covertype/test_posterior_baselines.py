"""SGLD, DSVI, NUTS in a frame and the Laplace approximation, on laws whose moments are known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.frame import InFrame
from pushforward.targets import Gaussian
from reproduce.data import split, stand_in
from reproduce.metrics.predictive import predictive
from reproduce.rivals import dsvi, framed_nuts, laplace, sgld
from reproduce.rivals.chains import run_chunk
from reproduce.rivals.minibatched import minibatched
from reproduce.targets import BayesianLogisticRegression

NORMAL = Gaussian([1.0, -2.0], np.diag([0.25, 4.0]))


def after(algorithm, steps, seed=0):
    key_init, key_run = jax.random.split(jax.random.key(seed))
    return run_chunk(algorithm, key_run, algorithm.init(key_init), jnp.asarray(0), jnp.asarray(steps))[0]


def test_sgld_keeps_its_last_iterates_in_order():
    state = after(sgld.algorithm(NORMAL, step_size=0.01, num_kept=10, keep_every=3), 47)
    # Steps 45 and 46 have begun the sixteenth stretch, which took the place of the sixth.
    np.testing.assert_array_equal(state.last[15 % 10], state.position)
    assert len(np.unique(np.asarray(state.last), axis=0)) == 10
    drawn = sgld.algorithm(NORMAL).sample(jax.random.key(0), state, 10)
    np.testing.assert_array_equal(drawn, state.last)


def test_sgld_has_the_step_of_the_paper():
    algorithm = sgld.algorithm(NORMAL, step_size=0.1, decay=0.55)
    state = algorithm.init(jax.random.key(0))
    for t in range(3):
        state, info = eqx.filter_jit(algorithm.step)(jax.random.key(t), state)
        assert float(info["step_size"]) == pytest.approx(0.1 / (t + 1) ** 0.55, rel=1e-5)


def test_sgld_samples_a_normal_law():
    """800 draws, 40 steps of 0.1 apart: moments within 5 standard errors and 5 % for the step's own bias."""
    state = after(sgld.algorithm(NORMAL, step_size=0.02, decay=0.0, num_kept=800, keep_every=100), 90_000)
    draws = np.asarray(state.last)
    # The slow coordinate has autocorrelation exp(-0.02 * 100 / 4) = 0.6 between kept draws: 200 effective.
    assert np.all(np.abs(draws.mean(0) - [1.0, -2.0]) < 5 * np.array([0.5, 2.0]) / np.sqrt([800, 200]))
    np.testing.assert_allclose(draws.std(0), [0.5, 2.0], rtol=0.25)
    # The test can fail: a law twice as wide is refused.
    assert not np.allclose(2 * draws.std(0), [0.5, 2.0], rtol=0.25)


def test_dsvi_finds_means_and_scales_of_a_normal_law():
    algorithm = dsvi.algorithm(NORMAL, learning_rate=0.2, stage=100, stage_decay=0.9, num_draws=8)
    state = after(algorithm, 4000)
    np.testing.assert_allclose(state.mean, [1.0, -2.0], atol=0.05)
    np.testing.assert_allclose(state.scale, [0.5, 2.0], rtol=0.05)
    draws = np.asarray(algorithm.sample(jax.random.key(0), state, 4000))
    np.testing.assert_allclose(draws.std(0), [0.5, 2.0], rtol=0.1)


def test_dsvi_takes_the_step_it_says(small):
    algorithm = dsvi.algorithm(small, learning_rate=1e-3, initial_scale=0.1)
    state = algorithm.init(jax.random.key(0))
    new, _ = eqx.filter_jit(algorithm.step)(jax.random.key(5), state)
    z = jax.random.normal(jax.random.key(5), (1, small.dim))[0]
    g = eqx.filter_jit(small.score)(0.1 * z)
    np.testing.assert_allclose(new.mean, 1e-3 * g, rtol=1e-5)
    np.testing.assert_allclose(new.scale, 0.1 + 1e-4 * (g * z + 10.0), rtol=1e-5)


class Skewed(Target):
    """`-log` of a Gamma(3) variable in one coordinate: mean and spread known, and far from symmetric."""

    dim: int = eqx.field(static=True, default=2)
    name: str = eqx.field(static=True, default="skewed")

    def log_density(self, x):
        return -3.0 * x[0] - jnp.exp(-x[0]) - 0.5 * x[1] ** 2


def test_nuts_in_a_frame_samples_a_skewed_law():
    """4,000 draws: means at 5 standard errors of 2,000 effective ones, a false failure in a million keys."""
    algorithm = framed_nuts.algorithm(Skewed(), num_chains=8, num_warmup=60, max_doublings=5)
    state = eqx.filter_jit(algorithm.init)(jax.random.key(0))
    key = jax.random.key(1)
    state, _, _ = framed_nuts.positions(algorithm, key, state, jnp.asarray(0), 60)
    assert int(state.steps) == 60
    joined = []
    for piece in range(9):
        first = jnp.asarray(60 + 60 * piece)
        state, draws, info = framed_nuts.positions(algorithm, key, state, first, 60)
        joined.append(np.asarray(draws))
    x = np.concatenate(joined).reshape(-1, 2)
    euler, mean, sd = 0.5772156649, 0.5772156649 - 1.5, np.sqrt(np.pi**2 / 6 - 1.25)
    assert mean == pytest.approx(euler - 1.5)
    assert abs(x[:, 0].mean() - mean) < 5 * sd / np.sqrt(2000)
    assert abs(x[:, 1].mean()) < 5 / np.sqrt(2000)
    np.testing.assert_allclose(x.std(0), [sd, 1.0], rtol=0.1)
    assert 0.6 < float(info["acceptance"].mean()) < 0.97
    # The test can fail: without its tail the law has another mean.
    assert abs(np.minimum(x[:, 0], -0.8).mean() - mean) > 5 * sd / np.sqrt(2000)


def test_the_laplace_approximation_is_exact_where_the_law_is_normal(small):
    peak = small.peak()
    law, frame = laplace.gaussian(peak), laplace.frame(peak)
    seen = InFrame(law, frame)
    x = jnp.asarray([0.5, -1.0, 0.3, 2.0, -0.2])
    np.testing.assert_allclose(eqx.filter_jit(seen.score)(x), -x, atol=1e-3)
    np.testing.assert_allclose(frame(jnp.zeros(5)), peak.mode, rtol=1e-5)


def test_every_step_sees_another_minibatch(small):
    algorithm = minibatched(eqx.Partial(sgld.algorithm, step_size=1e-12), small, 3)
    state = algorithm.init(jax.random.key(0))
    step = eqx.filter_jit(algorithm.step)
    norms = {float(step(jax.random.key(i), state)[1]["score_norm"]) for i in range(5)}
    assert len(norms) == 5


def test_predictive_figures_by_hand():
    weights = np.array([[1.0, 0.0], [3.0, -1.0]])
    features, labels = np.array([[1.0], [-2.0], [0.5]]), np.array([1, -1, -1])
    found = predictive(weights, features, labels)
    sigmoid = lambda a: 1 / (1 + np.exp(-a))  # noqa: E731
    p = np.array(
        [
            (sigmoid(1.0) + sigmoid(2.0)) / 2,
            (sigmoid(2.0) + sigmoid(7.0)) / 2,
            (sigmoid(-0.5) + sigmoid(-0.5)) / 2,
        ]
    )
    assert found.accuracy == pytest.approx(np.mean(p > 0.5))
    assert found.log_predictive == pytest.approx(np.mean(np.log(p)), rel=1e-6)
    assert found.calibration[:, 2].sum() == 3
    positive = np.where(labels > 0, p, 1 - p)
    assert found.calibration_error == pytest.approx(np.mean(np.abs(positive - (labels > 0))), rel=1e-5)


def test_predictive_without_a_bias_and_with_what_broke_down():
    features, labels = np.ones((4, 2)), np.array([1, 1, -1, 1])
    with_bias = predictive(np.array([[0.3, 0.1, 0.2]]), features, labels)
    without = predictive(np.array([[0.4, 0.2]]), features, labels)
    assert with_bias.log_predictive == pytest.approx(without.log_predictive, rel=1e-6)
    assert np.isnan(predictive(np.array([[np.nan, 1.0]]), features, labels).accuracy)
    with pytest.raises(ValueError, match="Leave out the coordinate"):
        predictive(np.zeros((3, 4)), features, labels)


def test_the_true_model_is_calibrated():
    data = split(*stand_in(10_000), 0)
    mode = BayesianLogisticRegression(data.features, data.labels).peak().mode
    found = predictive(mode[None, :-1], data.features, data.labels)
    # 20 bins of 400 rows: chance alone gives sqrt(2 / pi) * 0.4 / sqrt(400) = 0.016.
    assert found.calibration_error < 0.03
    assert predictive(3 * mode[None, :-1], data.features, data.labels).calibration_error > 0.06
