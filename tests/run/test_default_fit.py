"""The default recipe on a target that none of its numbers was chosen on: shifted, scaled, uneven modes."""

import jax
import numpy as np
import pytest
from quick import quick

import pushforward as pf
from pushforward.recipe import methods
from pushforward.recipe.search import find_peaks
from pushforward.recipe.state import State
from pushforward.run.clock import Clock
from pushforward.run.driver import Driver
from pushforward.targets import Mixture
from pushforward.training import Outcome

pytestmark = pytest.mark.quick_compilation

SHIFT, SCALE = 1000.0, 20.0
WEIGHTS = np.array([0.7, 0.3])
FEW = {"annealing.num_particles": 4096}


@pytest.fixture(scope="module")
def target():
    means = SHIFT + SCALE * np.array([[-2.0, 1.0], [2.5, 0.0]])
    covariances = SCALE**2 * np.array([[[0.3, 0.1], [0.1, 0.2]], [[0.1, 0.0], [0.0, 0.6]]])
    return Mixture(WEIGHTS, means, covariances)


@pytest.fixture(scope="module")
def annealed(target):
    """What the stages before the training find."""
    recipe = quick("annealed", **FEW, **{"annealing.components": 8}).recipe
    driver = Driver(jax.random.key(0), State(target=target), recipe, Clock(recipe))
    driver.run(methods.ANNEALED)
    return driver.state


def test_walks_find_both_modes_far_from_the_origin(target):
    peaks = find_peaks(jax.random.key(1), target)
    for mean in np.asarray(target.means):
        assert np.min(np.linalg.norm(peaks.points - mean, axis=1)) < 0.1 * SCALE
    # Local scales, up to the bend of a mixture's own tails.
    widths = np.sqrt(np.sum(peaks.choleskys**2, axis=2))
    assert np.all((widths > 0.2 * SCALE) & (widths < 2.0 * SCALE))


def test_particles_weigh_modes_and_know_log_z(target, annealed):
    x = np.asarray(jax.vmap(annealed.frame)(annealed.draws))
    share = np.mean(x[:, 0] < SHIFT)
    # 4,096 particles through a few resamplings: about 0.012 of noise; 5 of them fail one run in a million.
    assert abs(share - WEIGHTS[0]) < 0.06
    assert abs(annealed.log_z) < 0.1  # the mixture is normalised
    assert annealed.rounds[-1]["efficiency"] > 0.6


def test_mixture_latent_matches_the_draws(target, annealed):
    x = np.asarray(annealed.sampler().sample(jax.random.key(2), 20_000))
    exact = np.asarray(target.sample(jax.random.key(3), 20_000))
    assert np.allclose(x.mean(0), exact.mean(0), atol=0.15 * SCALE)
    assert np.allclose(x.std(0) / exact.std(0), 1.0, atol=0.06)


def share_of(done):
    x = np.asarray(done.sampler.sample(jax.random.key(5), 50_000))
    return np.mean(x[:, 0] < SHIFT)


TRAINED = {"num_steps": 150, "judge.learnt": 2.0}
"""A training that is not left out because the start is good."""


def test_default_fit_is_nearly_exact_and_says_so(target):
    done = pf.fit(jax.random.key(4), target, method=quick(**FEW, **TRAINED), progress=False)
    assert done.outcome.good
    phases = [phase["phase"] for phase in done.phases]
    assert phases == ["search", "path", "adapt", "residual", "train", "reweight"]
    metrics = done.sampler.about["metrics"]
    assert metrics["efficiency"] > 0.8
    assert abs(metrics["log_z"]) < 0.05
    # Draws and reweighting together: about 0.003 of noise.
    assert abs(share_of(done) - WEIGHTS[0]) < 0.015


WILD = {"num_steps": 40, "learning_rate": 1e30, "judge.learnt": 2.0, "fallback.most_dim": 1}
"""A training that runs away; neither left out, because the start is good, nor given up for particles."""


def test_a_start_that_is_good_outlives_a_training_that_runs_away(target):
    done = pf.fit(jax.random.key(4), target, method=quick(**FEW, **WILD), progress=False)
    assert done.outcome is Outcome.UNTRAINED
    assert done.outcome.good
    assert [phase.get("outcome") for phase in done.phases][-3:] == [None, "DIVERGED", None]
    about = done.sampler.about
    assert about["outcome"] == "UNTRAINED"
    assert about["metrics"]["efficiency"] > 0.5
    assert abs(share_of(done) - WEIGHTS[0]) < 0.015


def test_a_start_that_is_poor_does_not_make_a_training_good_that_ran_away(target):
    """No start is as good as this judge asks for."""
    method = quick(**FEW, **WILD, **{"judge.never": 2.0})
    done = pf.fit(jax.random.key(4), target, method=method, progress=False, throw=False)
    assert done.outcome is Outcome.INACCURATE
