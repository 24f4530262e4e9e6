"""Necks: widths that follow a coordinate are found in draws, and particles go along them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.latents import NormalMixture
from pushforward.networks.coupled import _bounded, coupled, unbounded
from pushforward.recipe import methods
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.judge import weighed
from pushforward.recipe.necks import along_necks, filled_up, find_necks, neck_map
from pushforward.recipe.peaks import Peaks
from pushforward.recipe.state import State
from pushforward.recipe.table import Necks, Recipe
from pushforward.run.clock import Clock
from pushforward.run.driver import Driver
from pushforward.targets import correlated_gaussian, funnel_nd
from pushforward.weights import effective

pytestmark = pytest.mark.quick_compilation

RECIPE = Recipe()
DIM, MANY = 24, 8192


def latents(seen, x):
    return seen.latents(np.asarray(x, np.float64), 4096)


def bound(target, law):
    return float(np.mean(weighed(np.random.default_rng(3), target, law, RECIPE)))


def look(target, x, least=-np.inf):
    return along_necks(np.random.default_rng(1), target, np.asarray(x, np.float64), RECIPE, least)


def two_necks(seed: int, n: int = MANY):
    """Coordinates 3 and 20 are necks; those below 10 follow the one, those above the other, which turns."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, DIM))
    x = z.copy()
    for j in set(range(DIM)) - {3, 20}:
        x[:, j] *= np.exp(0.8 * z[:, 3] if j < 10 else -0.5 * z[:, 20])
    return 100.0 + 7.0 * x


def test_the_neck_of_a_funnel_is_found_and_its_map_is_the_funnel():
    target = funnel_nd(DIM)
    seen = neck_map(np.asarray(target.sample(jax.random.key(0), MANY)), RECIPE, white=False)
    assert seen.necks == (0,)
    assert effective(weighed(np.random.default_rng(1), target, seen, RECIPE)) > 0.9


def test_widths_hold_beyond_the_draws_they_were_learnt_from():
    target = funnel_nd(DIM)
    x = target.sample(jax.random.key(0), 8 * MANY)
    near = x[jnp.abs(x[:, 0]) < 1.5]
    seen = neck_map(np.asarray(near), RECIPE, white=False)
    for low, high in ((-6.0, -4.0), (4.0, 6.0)):
        far = x[(x[:, 0] > low) & (x[:, 0] < high)]
        widths = latents(seen, far)[:, 1:].std(0)
        assert np.abs(np.log(widths)).mean() < 0.1


def test_draws_without_a_neck_have_none():
    target = correlated_gaussian(jax.random.key(5), DIM)
    x = target.sample(jax.random.key(0), MANY)
    assert neck_map(np.asarray(x), RECIPE, white=True) is None
    assert look(target, x) is None


def test_coordinates_may_follow_different_necks():
    seen = neck_map(two_necks(0), RECIPE, white=False)
    assert sorted(seen.necks) == [3, 20]
    z = latents(seen, two_necks(1))
    assert np.abs(z.std(0) - 1.0).max() < 0.08
    # Nothing is left that follows a neck: the size of no latent goes with another.
    left = np.corrcoef(np.abs(z), z, rowvar=False)[:DIM, DIM:]
    assert np.abs(left - np.diag(np.diag(left))).max() < 0.06


def test_widths_that_hardly_follow_make_no_neck():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4 * MANY, DIM))
    for slope, is_neck in ((0.15, False), (0.3, True)):
        u = z * np.exp(slope * z[:, [3]])
        u[:, 3] = z[:, 3]
        found = find_necks(u, Necks(), RECIPE.annealing.num_snapshots)
        assert (found is not None) == is_neck


@pytest.mark.parametrize("outlier", [1e3, 1e30])
def test_one_far_draw_does_not_hide_a_neck(outlier):
    u = (two_necks(0) - 100.0) / 7.0
    u[0, 3] = outlier
    found = find_necks(u, Necks(), RECIPE.annealing.num_snapshots)
    assert found is not None
    assert sorted(found.necks) == [3, 20]
    assert np.isfinite(found.slopes).all()


@pytest.mark.parametrize("white", [False, True])
@pytest.mark.parametrize("how", ["nearly constant", "few", "huge"])
def test_odd_draws_are_no_error(how, white):
    x = np.array(two_necks(0, 512))
    if how == "nearly constant":
        x[:, [3, 5]] = 1.0
        x[0, [3, 5]] = 2.0
    if how == "few":
        x = np.repeat(x[:4], 128, axis=0)
    if how == "huge":
        x[:, 7] *= 1e18
    found = neck_map(x, RECIPE, white=white)
    assert found is None or all(
        np.isfinite(a).all() for a in jax.tree.leaves(eqx.filter(found, eqx.is_array))
    )


@pytest.mark.parametrize("width", [64, 100])
def test_a_map_of_necks_is_the_same_with_units_to_spare(width):
    narrow = neck_map(two_necks(0), RECIPE, white=False).network
    fresh = coupled(jax.random.key(1), DIM, width=width)
    wide = filled_up(fresh, narrow)
    assert [a.shape for a in jax.tree.leaves(wide)] == [a.shape for a in jax.tree.leaves(fresh)]
    z = jax.random.normal(jax.random.key(2), (100, DIM))
    np.testing.assert_allclose(jax.vmap(wide)(z), jax.vmap(narrow)(z), rtol=1e-4, atol=1e-4)
    assert filled_up(coupled(jax.random.key(1), DIM, width=4), narrow) is None


def test_a_layer_can_be_told_by_how_much_to_stretch():
    logs = np.linspace(-7.5, 2.8, 50)
    np.testing.assert_allclose(_bounded(jnp.asarray(unbounded(logs))), logs, atol=1e-4)


def test_a_mixture_that_is_nearer_to_the_target_is_kept():
    """Two normals of unlike widths: widths do follow a coordinate, but no map of it is the target."""
    means = jnp.zeros((2, DIM)).at[:, 0].set(jnp.asarray([4.0, -4.0]))
    law = NormalMixture(jnp.full(2, 0.5), means, jnp.eye(DIM) * jnp.asarray([1.0, 0.3])[:, None, None])
    target = Target.from_log_density(law.log_density, dim=DIM, name="two")
    x = law.sample(jax.random.key(0), MANY)
    assert look(target, x) is not None
    assert look(target, x, bound(target, Approximation(Frame.identity(DIM), law))) is None


def from_its_middle(**changes):
    """Where annealing stands whose first law is one of the middle of a funnel only."""
    peaks = Peaks(np.zeros((1, DIM)), np.eye(DIM)[None], np.zeros(1))
    recipe = RECIPE.replace(annealing={"num_particles": 512}).replace(**changes)
    rows = []
    driver = Driver(jax.random.key(0), State(target=funnel_nd(DIM), peaks=peaks), recipe,
                    Clock(recipe, callback=rows.append))  # fmt: skip
    return driver, rows


def test_particles_go_along_the_neck_of_a_funnel_in_many_dimensions():
    """Moves without a map of the neck hardly leave its middle."""
    driver, rows = from_its_middle()
    driver.run((methods.ANNEAL,))
    state = driver.state
    assert rows[-1]["necks"] > 0
    assert state.efficiency > 0.75
    assert state.log_z == pytest.approx(float(state.target.log_z), abs=0.5)
    draws = np.asarray(state.sampler().sample(jax.random.key(3), 4096))
    assert draws[:, 0].std() == pytest.approx(3.0, rel=0.15)


def test_maps_begin_at_the_map_along_necks():
    driver, rows = from_its_middle(
        # One round along necks, which is never good enough; nor is what one step of a map makes of it.
        necks={"rounds": 1, "good": 2.0},
        maps={"rounds": 1, "good_least": 2.0, "steps_next": 1, "learning_rate": 1e-6},
    )
    driver.run((methods.ANNEAL, methods.MAPS))
    assert [phase["phase"] for phase in driver.phases] == ["anneal", "maps"]
    z = np.random.default_rng(0).normal(size=(64, DIM))
    along, last = (np.asarray(jax.vmap(row.sampler.network)(jnp.asarray(z, float))) for row in rows[-2:])
    assert np.abs(along - z).max() > 1.0
    np.testing.assert_allclose(last, along, atol=5e-3)
