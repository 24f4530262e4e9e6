"""A mode that neither walks nor looks at places come upon is seen by the weights of a law's draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.host import into
from pushforward.latents import NormalMixture, standard
from pushforward.recipe import residual
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.residual import hidden, num_looks, resolution
from pushforward.recipe.search import find_peaks
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe, Search
from pushforward.run.clock import Clock
from pushforward.targets import Mixture

pytestmark = pytest.mark.quick_compilation

DIM, SHARE, WIDTH = 3, 0.3, 1 / 50
PLACE = np.array([1.0, 0.5, -0.5])
LOOKS = 2**18
RECIPE = Recipe(search=Search(num_walks=64, looks=LOOKS)).replace(
    annealing={"num_particles": 1024}, adapt={"num_draws": 2048, "effective": 4096.0, "judged": 8192}
)


def with_needle(place, width):
    return Mixture([1 - SHARE, SHARE], [np.zeros(DIM), place], [np.eye(DIM), width**2 * np.eye(DIM)])


def look(target, seed=0, looks=LOOKS, law=None, frame=None):
    law, frame = law or standard(DIM), frame or Frame.identity(DIM)
    return hidden(np.random.default_rng(seed), target, Approximation(frame, law), looks, RECIPE)


@pytest.fixture(scope="module")
def needle():
    return with_needle(PLACE, WIDTH)


@pytest.fixture(scope="module")
def searched(needle):
    return find_peaks(jax.random.key(0), needle, RECIPE.search)


def test_a_needle_is_found_by_weights_and_not_by_the_search(needle, searched):
    assert len(searched.points) == 1
    np.testing.assert_allclose(searched.points[0], 0.0, atol=0.01)
    assert resolution(DIM, LOOKS, SHARE, RECIPE.residual) < WIDTH
    found = look(needle)
    (mass,), found = found.masses, found.peaks
    assert mass == pytest.approx(SHARE, abs=0.01)
    np.testing.assert_allclose(found.points[0], PLACE, atol=0.1 * WIDTH)
    np.testing.assert_allclose(found.choleskys[0], WIDTH * np.eye(DIM), atol=0.01 * WIDTH)


def test_a_law_that_lacks_a_needle_begins_again_and_has_it(needle, searched):
    start = State(target=needle, peaks=searched, latent=standard(DIM), good=True)
    assert residual.applies(start, RECIPE)
    first, last = residual.run(jax.random.key(1), start, RECIPE, Clock(RECIPE))
    assert len(first.peaks.points) == 2
    # The second look sees nothing more, and says how many places it was at.
    assert last.metrics["looks"] == num_looks(needle, RECIPE.search) == LOOKS
    assert not residual.applies(last, RECIPE)
    assert last.log_z == pytest.approx(0.0, abs=0.05)
    assert last.efficiency > 0.8
    x = np.asarray(last.sampler().sample(jax.random.key(2), 20_000))
    inside = np.mean(np.linalg.norm(x - PLACE, axis=1) < 6 * WIDTH)
    assert inside == pytest.approx(SHARE, abs=0.02)


def test_a_law_in_a_frame_is_looked_at_in_the_frame(needle):
    zero = jnp.zeros(DIM)
    frame = Frame(jnp.full(DIM, 5.0), jnp.full(DIM, 10.0), zero, zero, jnp.eye(DIM))
    far = Target.from_log_density(lambda x: needle.log_density((x - 5.0) / 10.0), dim=DIM)
    found = look(far, frame=frame).peaks
    assert len(found.points) == 1
    np.testing.assert_allclose(into(frame, found.points)[0], PLACE, atol=0.1 * WIDTH)


def tailed(x):
    """A t law of three degrees of freedom, higher than a normal by any number of nats far out."""
    return -0.5 * (3.0 + DIM) * jnp.log1p(jnp.sum(x**2) / 3.0)


def test_where_nothing_is_hidden_there_is_none(needle):
    normal = standard(DIM)
    assert look(Target.from_log_density(normal.log_density, dim=DIM)) is None
    # Nor where the law has the needle, or lacks nothing but tails.
    assert look(needle, law=NormalMixture(needle.weights, needle.means, needle.scales)) is None
    assert look(Target.from_log_density(tailed, dim=DIM)) is None


def test_a_mode_of_next_to_no_mass_is_none():
    light = Mixture([1 - 1e-4, 1e-4], [np.zeros(DIM), PLACE], [np.eye(DIM), 1e-4 * np.eye(DIM)])
    assert look(light) is None


def test_a_state_without_a_further_mode_stays_as_it_was(needle, searched):
    normal = Target.from_log_density(standard(DIM).log_density, dim=DIM)
    start = State(target=normal, peaks=searched, latent=standard(DIM), log_z=0.0, good=True)
    (after,) = residual.run(jax.random.key(1), start, RECIPE, Clock(RECIPE))
    assert after.metrics == {"looks": LOOKS}
    assert after.replace(metrics={}) == start


def test_a_law_is_looked_at_once(needle, searched):
    start = State(target=needle, peaks=searched, latent=standard(DIM))
    assert not residual.applies(start.replace(metrics={"looks": 1.0}), RECIPE)
    assert not residual.applies(start.replace(latent=None), RECIPE)


def test_the_resolution_falls_with_looks_and_rises_with_the_dimension():
    looks = [resolution(DIM, 2**power, SHARE, RECIPE.residual) for power in (10, 14, 18, 22)]
    assert looks == sorted(set(looks), reverse=True)
    dims = [resolution(dim, LOOKS, SHARE, RECIPE.residual) for dim in (1, 2, 4, 8, 16)]
    assert dims == sorted(set(dims))
    # Nor is a mode of less mass as easy to see.
    assert resolution(DIM, LOOKS, 0.01, RECIPE.residual) > resolution(DIM, LOOKS, SHARE, RECIPE.residual)


def test_modes_as_wide_as_the_resolution_are_seen_as_often_as_it_says():
    looks, rng = 2**12, np.random.default_rng(0)
    width = resolution(DIM, looks, SHARE, RECIPE.residual)
    seen = [look(with_needle(place, width), i, looks) for i, place in enumerate(rng.normal(size=(60, DIM)))]
    # 57 are expected; fewer than 50 of 60 are in one run of a thousand.
    assert sum(each is not None for each in seen) >= 50
