"""Normal laws along walks hold the mass that a peak does not; where one is efficient, nothing else is needed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick import quick

import pushforward as pf
from pushforward.base import Target
from pushforward.networks import Identity
from pushforward.recipe import search
from pushforward.recipe.path_laplace import with_places
from pushforward.recipe.peaks import Peaks
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe, Search
from pushforward.run.clock import Clock
from pushforward.targets import funnel_nd
from pushforward.training import Outcome

DIM = 5
RECIPE = Recipe(search=Search(num_walks=64))


def searched(target, seed=0):
    """The state after the search."""
    (state,) = search.run(jax.random.key(seed), State(target=target), RECIPE, Clock(RECIPE))
    return state


def joined(seed, state):
    return with_places(np.random.default_rng(seed), state, RECIPE)


@pytest.fixture(scope="module")
def normal():
    return Target.from_log_density(lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), dim=DIM, name="normal")


def test_places_hold_the_mass_that_the_peak_of_a_funnel_does_not():
    target = funnel_nd(DIM)
    state = searched(target)
    # The density is highest at -9 (dim - 1) / 2, six deviations out of the law of the first coordinate.
    assert np.all(state.peaks.points[:, 0] < -10.0)
    places = joined(1, state)
    assert np.all(np.abs(places.points[:10, 0]) < 3.0 * 3.0)
    assert np.median(np.abs(places.points[:, 0])) < 3.0


@pytest.mark.parametrize("seed", range(2))
def test_places_of_walks_that_a_neck_of_many_coordinates_draws_in_at_once(seed):
    """Their starts and first steps are looked at too; fifteen steps on, most walks are far away."""
    target = funnel_nd(30)
    peaks = Peaks(-50.0 * np.eye(1, 30), 1e-6 * np.eye(30)[None], np.zeros(1))
    places = joined(seed, searched(target, seed).replace(peaks=peaks))
    best = np.argsort(-places.log_masses)[:8]
    assert np.abs(places.points[best, 0]).max() < 3.0


def test_a_peak_that_holds_all_the_mass_stays_alone(normal):
    state = searched(normal)
    assert joined(1, state) is state.peaks


def test_what_a_peaks_curvature_says_all_about_needs_no_particles_and_no_training(normal):
    method = quick(**{"annealing.num_particles": 1024})
    done = pf.fit(jax.random.key(8), normal, method=method, progress=False)
    phases = {phase["phase"]: phase for phase in done.phases}
    assert done.outcome is Outcome.FINISHED
    assert "anneal" not in phases
    assert "temperatures" not in phases["path"]["rounds"][-1]
    assert "train" not in phases
    assert isinstance(done.sampler.network, Identity)
    assert done.sampler.about["metrics"]["efficiency"] > 0.99
    x = np.asarray(done.sampler.sample(jax.random.key(9), 20_000))
    # Means and standard deviations of 20,000 draws: within 0.035 and 0.025, five standard errors.
    np.testing.assert_allclose(x.mean(0), 3.0, atol=0.035)
    np.testing.assert_allclose(x.std(0), 1.0, atol=0.025)
