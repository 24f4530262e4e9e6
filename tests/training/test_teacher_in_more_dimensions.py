"""What the teacher does from four dimensions on: stops below a peak, moves of some coordinates, more modes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.latents import Normal
from pushforward.targets import funnel_nd
from pushforward.targets.funnel import Funnel
from pushforward.training.mixture_fit import fit_mixture, mean_log_density
from pushforward.training.pulled_back import PulledBack, fit_coupled
from pushforward.training.scout import scout
from pushforward.training.smc import Between, Population, sweeps
from pushforward.training.stops import with_stops

DIM = 5


@pytest.fixture(scope="module")
def normal():
    return Target.from_log_density(lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), dim=DIM, name="normal")


def test_stops_hold_the_mass_that_the_peak_of_a_funnel_does_not():
    target = funnel_nd(DIM)
    peaks = scout(jax.random.key(0), target, num_starts=64)
    # The density is highest at -9 (dim - 1) / 2, six deviations out of the law of the first coordinate.
    assert np.all(peaks.points[:, 0] < -10.0)
    stops = with_stops(jax.random.key(1), target, peaks)
    assert np.all(np.abs(stops.points[:10, 0]) < 3.0 * 3.0)
    assert np.median(np.abs(stops.points[:, 0])) < 3.0


def test_a_peak_that_holds_all_the_mass_stays_alone(normal):
    peaks = scout(jax.random.key(0), normal, num_starts=64)
    assert with_stops(jax.random.key(1), normal, peaks) is peaks


def wells(x):
    """Five independent double wells with shares 0.88 and 0.12, far too high a wall for local moves."""
    return jnp.sum(jnp.logaddexp(-0.5 * ((x - 6.0) / 0.5) ** 2, -0.5 * ((x + 6.0) / 0.5) ** 2 - 2.0))


def test_sweeps_move_single_coordinates_between_wells():
    target = Target.from_log_density(wells, dim=DIM, name="wells")
    rng = np.random.default_rng(0)
    # Half of the particles on either side in every coordinate: 32 modes, all with wrong weights.
    x = jnp.asarray(6.0 * rng.choice([-1.0, 1.0], (4096, DIM)) + 0.5 * rng.normal(size=(4096, DIM)), float)
    start = Normal(DIM)
    values = jax.vmap(target.log_density)(x)
    population = Population(x, values, jax.vmap(start.log_density)(x))
    moved, _, _ = sweeps(
        Between(target, start), jax.random.key(0), population, jnp.asarray(1.0), jnp.asarray(-1.0), 150
    )
    share = np.mean(np.asarray(moved.x) > 0, axis=0)
    # On the way from 0.5 to 1 / (1 + e^-2) = 0.881, with 0.006 of noise each, and never beyond.
    assert np.all((share > 0.8) & (share < 0.91))
    assert np.allclose(np.std(np.abs(np.asarray(moved.x)), axis=0), 0.5, atol=0.03)


def test_many_modes_in_many_dimensions_are_fitted_from_their_peaks():
    rng = np.random.default_rng(1)
    dim, modes = 20, 24
    centres = 10.0 * rng.normal(size=(modes, dim))
    x = jnp.asarray(centres[rng.integers(modes, size=4096)] + rng.normal(size=(4096, dim)), float)
    mixture = fit_mixture(jax.random.key(0), x, modes, centres=jnp.asarray(centres, float))
    # The entropy of the law itself, less what 4,096 rows cannot say.
    exact = np.log(modes) + 0.5 * dim * np.log(2 * np.pi * np.e)
    fresh = jnp.asarray(centres[rng.integers(modes, size=4096)] + rng.normal(size=(4096, dim)), float)
    assert float(mean_log_density(mixture, fresh)) > -exact - 0.6


def test_a_fitted_map_makes_a_funnel_look_normal():
    target = Funnel(DIM, neck=0, neck_mean=0.0, neck_scale=1.0, centre=0.0)
    draws = target.sample(jax.random.key(0), 4096)
    network = fit_coupled(jax.random.key(1), draws, Normal(DIM), num_steps=300)
    seen = PulledBack(target, network)
    z = jax.random.normal(jax.random.key(2), (2048, DIM))
    # By how much the target seen through the map differs from the map's own latent law, constant apart.
    odd = [
        np.std(np.asarray(jax.vmap(q.log_density)(z) - jax.vmap(Normal(DIM).log_density)(z)))
        for q in (target, seen)
    ]
    assert odd[0] > 2.0
    assert odd[1] < 0.5 * odd[0]
