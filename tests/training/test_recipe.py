"""The default recipe on a target that none of its settings was chosen on: shifted, scaled, uneven modes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.targets import Mixture, student_t
from pushforward.training import Outcome, fit, mending, preset, teacher
from pushforward.training.affine import frame_from_draws
from pushforward.training.scout import scout
from pushforward.training.teacher import learn

SHIFT, SCALE = 1000.0, 20.0
WEIGHTS = np.array([0.7, 0.3])


@pytest.fixture(scope="module")
def target():
    means = SHIFT + SCALE * np.array([[-2.0, 1.0], [2.5, 0.0]])
    covariances = SCALE**2 * np.array([[[0.3, 0.1], [0.1, 0.2]], [[0.1, 0.0], [0.0, 0.6]]])
    return Mixture(WEIGHTS, means, covariances)


@pytest.fixture(scope="module")
def lesson(target):
    *_, last = learn(jax.random.key(0), target, num_particles=4096, num_components=8)
    return last


def test_scout_finds_both_modes_far_from_the_origin(target):
    peaks = scout(jax.random.key(1), target)
    for mean in np.asarray(target.means):
        assert np.min(np.linalg.norm(peaks.points - mean, axis=1)) < 0.1 * SCALE
    # Local scales, up to the bend of a mixture's own tails.
    widths = np.sqrt(np.sum(peaks.choleskys**2, axis=2))
    assert np.all((widths > 0.2 * SCALE) & (widths < 2.0 * SCALE))


def test_teacher_weighs_modes_and_knows_log_z(target, lesson):
    x = np.asarray(jax.vmap(lesson.frame)(lesson.draws))
    share = np.mean(x[:, 0] < SHIFT)
    # 4,096 particles through a few resamplings: about 0.012 of noise; 5 of them fail one run in a million.
    assert abs(share - WEIGHTS[0]) < 0.06
    assert abs(lesson.log_z) < 0.1  # the mixture is normalised
    assert lesson.rounds[-1]["start_efficiency"] > 0.4


def test_mixture_latent_matches_the_draws(target, lesson):
    x = np.asarray(jax.vmap(lesson.frame)(lesson.mixture.sample(jax.random.key(2), 20_000)))
    exact = np.asarray(target.sample(jax.random.key(3), 20_000))
    assert np.allclose(x.mean(0), exact.mean(0), atol=0.15 * SCALE)
    assert np.allclose(x.std(0) / exact.std(0), 1.0, atol=0.06)


def test_frame_bends_for_heavy_tails_and_only_for_them():
    heavy = frame_from_draws(student_t(2.0).sample(jax.random.key(0), 20_000))
    light = frame_from_draws(jax.random.normal(jax.random.key(1), (20_000, 1)))
    assert heavy.bend[0] > 0.3
    assert light.bend[0] == 0.0
    u = jnp.asarray([0.7])
    assert jnp.allclose(heavy.inverse(heavy(u)), u, atol=1e-4)


def test_default_fit_is_nearly_exact_and_says_so(target, monkeypatch):
    # As few as above: what they compiled is used again, and the network mends the rest.
    monkeypatch.setattr(teacher, "particles_for", lambda target: 4096)
    done = fit(jax.random.key(4), target, settings=preset("default", num_steps=150), progress=False)
    assert done.outcome is Outcome.FINISHED
    assert [phase["phase"] for phase in done.phases] == ["teacher", "train", "repair"]
    metrics = done.sampler.about["metrics"]
    assert metrics["efficiency"] > 0.8
    assert abs(metrics["log_z"]) < 0.05
    x = np.asarray(done.sampler.sample(jax.random.key(5), 50_000))
    # Draws and repair together: about 0.003 of noise.
    assert abs(np.mean(x[:, 0] < SHIFT) - WEIGHTS[0]) < 0.015


def test_a_start_that_is_good_outlives_a_training_that_runs_away(target, monkeypatch):
    monkeypatch.setattr(teacher, "particles_for", lambda target: 4096)
    wild = preset("default", num_steps=40, learning_rate=1e30)
    done = fit(jax.random.key(4), target, settings=wild, progress=False)
    assert done.outcome is Outcome.UNTRAINED
    assert done.outcome.good
    assert [phase.get("outcome") for phase in done.phases] == [None, "DIVERGED", None]
    about = done.sampler.about
    assert about["outcome"] == "UNTRAINED"
    assert about["metrics"]["efficiency"] > 0.5
    x = np.asarray(done.sampler.sample(jax.random.key(5), 50_000))
    assert abs(np.mean(x[:, 0] < SHIFT) - WEIGHTS[0]) < 0.015


def test_a_start_that_is_poor_does_not_make_a_training_good_that_ran_away(target, monkeypatch):
    monkeypatch.setattr(teacher, "particles_for", lambda target: 4096)
    monkeypatch.setattr(mending, "doubt", lambda *_: "so it is.")
    wild = preset("default", num_steps=40, learning_rate=1e30)
    done = fit(jax.random.key(4), target, settings=wild, progress=False, throw=False)
    assert done.outcome is Outcome.INACCURATE
