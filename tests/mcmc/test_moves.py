"""Moves of particles leave the law as it is, and carry single coordinates from well to well."""

import jax
import jax.numpy as jnp
import numpy as np

from pushforward.base import Target
from pushforward.latents import Normal
from pushforward.mcmc.moves import Between, Population, crossover, sweeps
from pushforward.recipe.table import Annealing

DIM = 5


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
    plan = Annealing(num_sweeps=150, num_particles=4096).plan(DIM)
    moved, _, _ = sweeps(
        Between(target, start), jax.random.key(0), population, jnp.asarray(1.0), jnp.asarray(-1.0), plan
    )
    share = np.mean(np.asarray(moved.x) > 0, axis=0)
    # On the way from 0.5 to 1 / (1 + e^-2) = 0.881, with 0.006 of noise each, and never beyond.
    assert np.all((share > 0.8) & (share < 0.91))
    assert np.allclose(np.std(np.abs(np.asarray(moved.x)), axis=0), 0.5, atol=0.03)


def population_of(target, x):
    x, start = jnp.asarray(x, float), Normal(target.dim)
    between = Between(target, start)
    return between, Population(x, *jax.jit(jax.vmap(between.ends))(x))


def test_crossovers_make_independent_coordinates_independent():
    """Particles whose wells all agree: two of 32 modes. Where any exchange is accepted, all modes appear."""
    target = Target.from_log_density(wells, dim=DIM, name="wells")
    rng = np.random.default_rng(1)
    signs = np.where(rng.random((4096, 1)) < 0.88, 1.0, -1.0)
    between, population = population_of(target, 6.0 * signs + 0.5 * rng.normal(size=(4096, DIM)))

    @jax.jit
    def crossed(population):
        return jax.lax.fori_loop(
            0,
            20,
            lambda i, p: crossover(jax.random.fold_in(jax.random.key(2), i), between, p, 1.0),
            population,
        )

    before, after = (np.sign(np.asarray(p.x)) for p in (population, crossed(population)))
    assert np.corrcoef(before.T)[0, 1] > 0.999
    # Independent signs have correlations of 0.016; and no coordinate's share has changed.
    correlations = np.corrcoef(after.T)[np.triu_indices(DIM, 1)]
    assert np.abs(correlations).max() < 0.08
    np.testing.assert_array_equal(after.sum(0), before.sum(0))


def test_crossovers_leave_a_correlated_law_as_it_is():
    covariance = 0.4 * np.eye(DIM) + 0.6
    precision = np.linalg.inv(covariance)
    target = Target.from_log_density(lambda x: -0.5 * x @ jnp.asarray(precision, x.dtype) @ x, dim=DIM)
    x = np.random.default_rng(3).multivariate_normal(np.zeros(DIM), covariance, 8192)
    between, population = population_of(target, x)
    keys = jax.random.split(jax.random.key(4), 20)
    moved, _ = jax.jit(lambda p: jax.lax.scan(lambda p, k: (crossover(k, between, p, 1.0), None), p, keys))(
        population
    )
    assert np.mean(np.any(np.asarray(moved.x) != np.asarray(population.x), axis=1)) > 0.5
    # An entry of the sample covariance is within 0.016 of the truth; five of them.
    np.testing.assert_allclose(np.cov(np.asarray(moved.x).T), covariance, atol=0.08)
    values = jax.vmap(target.log_density)(moved.x)
    np.testing.assert_allclose(moved.log_target, values, rtol=1e-3, atol=1e-3)
