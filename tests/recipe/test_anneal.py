"""Tempered particles weigh modes and know log Z; and a map is fitted where that is not enough."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.latents import Normal
from pushforward.networks import coupled
from pushforward.recipe import methods
from pushforward.recipe.approximation import PulledBack
from pushforward.recipe.maps import fit_coupled
from pushforward.recipe.peaks import Peaks
from pushforward.recipe.state import State
from pushforward.recipe.table import Maps, Recipe
from pushforward.run.clock import Clock
from pushforward.run.driver import Driver
from pushforward.targets.funnels import Funnel

pytestmark = pytest.mark.quick_compilation

DIM = 5


def test_a_fitted_map_makes_a_funnel_look_normal():
    target = Funnel(DIM, neck=0, neck_mean=0.0, neck_scale=1.0, centre=0.0)
    draws = target.sample(jax.random.key(0), 4096)
    begin = coupled(jax.random.key(3), DIM)
    network = fit_coupled(jax.random.key(1), draws, Normal(DIM), 300, Maps(), begin)
    seen = PulledBack(target, network)
    z = jax.random.normal(jax.random.key(2), (2048, DIM))
    # By how much the target seen through the map differs from the map's own latent law, constant apart.
    odd = [
        np.std(np.asarray(jax.vmap(q.log_density)(z) - jax.vmap(Normal(DIM).log_density)(z)))
        for q in (target, seen)
    ]
    assert odd[0] > 2.0
    assert odd[1] < 0.5 * odd[0]


DEEP = 24


def annealed(**maps):
    """Where particles stand in 24 dimensions, a target of two normals, its peaks known."""
    two = Target.from_log_density(
        lambda x: jnp.logaddexp(-0.5 * jnp.sum((x - 2.0) ** 2), -0.5 * jnp.sum((x + 2.0) ** 2)), dim=DEEP
    )
    points = np.stack([np.full(DEEP, 2.0), np.full(DEEP, -2.0)])
    peaks = Peaks(points, np.stack([np.eye(DEEP)] * 2), np.zeros(2))
    recipe = Recipe().replace(annealing={"num_particles": 256, "most_rounds": 1}, maps=maps)
    driver = Driver(jax.random.key(0), State(target=two, peaks=peaks), recipe, Clock(recipe))
    driver.run((methods.ANNEAL,))
    return driver.state, methods.MAPS.applies(driver.state, recipe)


def test_a_mixture_that_is_good_for_its_dimension_needs_no_maps():
    """The bar, so many nats in each coordinate, is set on either side of what the mixture has."""
    state, _ = annealed()
    found = -np.log(state.efficiency) / DEEP
    assert 0.0 < state.efficiency < 1.0
    for nats, maps in ((0.9 * found, True), (1.1 * found, False)):
        state, applies = annealed(good_nats=nats, good_least=0.0)
        assert applies == maps
        assert state.next_cost == (Recipe().maps.cost if maps else 1.0)
