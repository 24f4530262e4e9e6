"""Work is counted in a program: it decides how many particles and draws a target gets."""

import jax
import jax.numpy as jnp
import numpy as np

import pushforward as pf
from pushforward.operations import operations
from pushforward.recipe.methods import for_target
from pushforward.recipe.table import Recipe
from pushforward.targets import correlated_gaussian, gmm40

POINTS = jnp.linspace(0.0, 1.0, 64)


def process(x):
    """The marginal likelihood of a Gaussian process: few parameters, much work."""
    apart = (POINTS[:, None] - POINTS[None]) / jnp.exp(x[0])
    covariance = jnp.exp(x[1] - 0.5 * apart**2) + jnp.exp(x[2]) * jnp.eye(64)
    return -jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(covariance)))) - 0.5 * jnp.sum(x**2)


def of(function, dim=3):
    return pf.Target.from_log_density(function, dim=dim)


def test_work_grows_with_what_is_done():
    cheap = operations(of(lambda x: -jnp.sum(x**2)))
    assert cheap < 100
    assert operations(of(process)) > 1000 * cheap
    many, few = (operations(correlated_gaussian(jax.random.key(0), dim, 10.0)) for dim in (400, 100))
    assert 10 < many / few < 20


def test_loops_count_as_often_as_they_turn():
    def looping(turns):
        def body(carry, _):
            return jnp.sin(carry), None

        return of(lambda x: -jnp.sum(jax.lax.scan(body, x, None, length=turns)[0] ** 2))

    once, often = operations(looping(1)), operations(looping(100))
    assert 30 < often / once < 120


def test_choices_and_inner_programs_are_counted():
    heavy = of(lambda x: jax.lax.cond(x[0] > 0, lambda: process(x), lambda: -jnp.sum(x**2)))
    assert operations(heavy) > 0.5 * operations(of(process))
    inner = of(lambda x: jax.jit(process)(x))
    np.testing.assert_allclose(operations(inner), operations(of(process)), rtol=0.01)


def test_dear_targets_get_fewer_particles_and_draws():
    numbers = Recipe().annealing
    particles = [for_target(Recipe(), each).annealing.num_particles for each in (gmm40(), gmm40(50))]
    assert particles == [32768, 8192]
    dear = for_target(Recipe(), of(process)).annealing.num_particles
    assert numbers.least_particles <= dear < 8192
    assert dear & (dear - 1) == 0
    default = pf.methods.Default().recipe
    cheap, dear = (for_target(default, each).training.batch_size for each in (gmm40(), of(process)))
    assert cheap == 1024
    assert default.open.least_batch <= dear < 1024
    assert dear & (dear - 1) == 0
