"""The path from a start law to a target, and moves of particles that leave the law at each place on it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pushforward.base import Target
from pushforward.latents import Latent, NormalMixture
from pushforward.mcmc import Each, OneKey, Points, Scalar
from pushforward.mcmc.langevin import propose


class Population(NamedTuple):
    """Weighted equally: the particles with both log densities."""

    x: Points
    log_target: Each
    log_start: Each

    def height(self, b: Scalar | float) -> Each:
        """Return the log density of the path at `b`."""
        # 0 * -inf would be NaN at b = 0 or b = 1.
        log_target = jnp.where(self.log_target == -jnp.inf, -jnp.inf, b * self.log_target)
        return log_target + (1.0 - b) * self.log_start


class Between(eqx.Module):
    """The two ends of the path; a log density that is not a number counts as no density at all."""

    target: Target
    start: Latent

    def ends(self, x: Float[Array, " dim"]) -> tuple[Scalar, Scalar]:
        """Return `log q(x)` and `log q0(x)`."""
        log_target = self.target.log_density(x)
        # Plus infinity would win every comparison; a point where the density blows up is refused like a NaN.
        log_target = jnp.where(jnp.isfinite(log_target), log_target, -jnp.inf)
        return log_target, self.start.log_density(x)

    def population(self, x: Points) -> Population:
        """Return particles at these points."""
        return Population(x, *jax.vmap(self.ends)(x))

    def slopes(self, x: Points, b: Scalar) -> tuple[Population, Points]:
        """Return particles at these points, and the gradients of the tempered log density."""

        def tempered(point):
            log_target, log_start = self.ends(point)
            return b * log_target + (1.0 - b) * log_start, (log_target, log_start)

        slope, ends = jax.vmap(jax.grad(tempered, has_aux=True))(x)
        return Population(x, *ends), jnp.where(jnp.isfinite(slope), slope, 0.0)


def robust_cholesky(x: Points) -> Float[Array, "dim dim"]:
    """Return a Cholesky factor of the covariance with each coordinate clipped at five robust deviations."""
    sub = x[:: max(1, x.shape[0] // 4096)]
    middle = jnp.median(sub, axis=0)
    deviation = 1.4826 * jnp.median(jnp.abs(sub - middle), axis=0) + 1e-12
    y = jnp.clip(sub - middle, -5.0 * deviation, 5.0 * deviation)
    covariance = y.T @ y / sub.shape[0]
    ridge = 1e-6 * jnp.diagonal(covariance) + 1e-12 * jnp.max(jnp.diagonal(covariance)) + 1e-30
    return jnp.linalg.cholesky(covariance + jnp.diag(ridge))


def _nearest_mean(start: Latent, x: Points) -> Float[Array, "n #dim"]:
    """Return the mean of the start's component that each particle is likeliest to be of, if it has several.

    Steps must suit the modes: in many dimensions the spread of modes far apart is another shape altogether.
    """
    if not isinstance(start, NormalMixture):
        return jnp.zeros((len(x), 1))
    return start.means[jnp.argmax(jax.vmap(start.component_log_densities)(x), axis=1)]


def _accepted(key: OneKey, gain: Each) -> Bool[Array, " n"]:
    u = jnp.log(jax.random.uniform(key, gain.shape))
    return u < jnp.where(jnp.isnan(gain), -jnp.inf, gain)


def _chosen(yes: Bool[Array, " n"], new: Population, old: Population) -> Population:
    return jax.tree.map(lambda a, c: jnp.where(yes.reshape(-1, *[1] * (a.ndim - 1)), a, c), new, old)


def _differences(key: OneKey, between: Between, population: Population, b: Scalar, plan: Any) -> Population:
    """Move one half along differences of the other (differential evolution), then let them change places.

    Now and then the step is exactly one difference, which can carry a particle from mode to mode: so
    mode weights keep mixing at every temperature.
    """
    key_pair, key_scale, key_accept, key_mask = jax.random.split(key, 4)
    n, dim = population.x.shape
    half = n // 2
    old, still = (jax.tree.map(lambda a, s=s: a[s], population) for s in (slice(half), slice(half, n)))
    pair = jax.random.randint(key_pair, (2, half), 0, n - half)
    u = jax.random.uniform(key_scale, (half, 2))
    moved = _some_coordinates(key_mask, half, dim)
    count = jnp.sum(moved, axis=1, keepdims=True)
    root = jnp.sqrt(2.0 * jnp.maximum(count, 1.0))
    whole = jnp.where(count < dim, *reversed(plan.whole_differences))
    low, high = plan.difference_logs
    part = plan.difference_length / root * jnp.exp((high - low) * u[:, 1:] + low)
    scale = jnp.where(u[:, :1] < whole, 1.0, part)
    new = between.population(old.x + moved * scale * (still.x[pair[0]] - still.x[pair[1]]))
    old = _chosen(_accepted(key_accept, new.height(b) - old.height(b)), new, old)
    return jax.tree.map(lambda *halves: jnp.concatenate(halves), still, old)


def crossover(key: OneKey, between: Between, population: Population, b: Scalar | float) -> Population:
    """Let pairs exchange some of their coordinates: both do, or neither, by the product of their densities.

    Where coordinates do not depend on each other, any exchange is accepted: what one particle found out about
    a coordinate, all soon know.
    """
    key_pairs, key_mask, key_accept = jax.random.split(key, 3)
    n, dim = population.x.shape
    half = n // 2
    order = jax.random.permutation(key_pairs, n)[: 2 * half]
    old = jax.tree.map(lambda a: a[order], population)
    one, other = old.x[:half], old.x[half:]
    given = _some_coordinates(key_mask, half, dim) * (other - one)
    new = between.population(jnp.concatenate([one + given, other - given]))
    gain = jnp.sum((new.height(b) - old.height(b)).reshape(2, half), axis=0)
    kept = _chosen(jnp.tile(_accepted(key_accept, gain), 2), new, old)
    return jax.tree.map(lambda a, c: a.at[order].set(c), population, kept)


def _some_coordinates(key: OneKey, num_rows: int, dim: int) -> Points:
    """Say for each row which coordinates move: a third of the time all, else from one to all of them.

    A target of many independent wells has too many modes for whole differences to lead from one to another,
    but few for each coordinate.
    """
    key_share, key_mask = jax.random.split(key)
    u = jax.random.uniform(key_share, (num_rows, 2))
    share = jnp.where(u[:, :1] < 1 / 3, 1.0, dim ** -u[:, 1:])
    return (jax.random.uniform(key_mask, (num_rows, dim)) < share).astype(float)


def _langevin(key, between: Between, old: Population, b, root, log_step, plan: Any):
    """Langevin moves with a spread of step sizes, preconditioned, exactly corrected."""
    key_noise, key_step, key_accept = jax.random.split(key, 3)
    width = plan.step_spread
    offset = jax.random.uniform(key_step, (len(old.x), 1), minval=-width, maxval=0.0)
    _, new, _, log_ratio = propose(
        key_noise, old.x, between.slopes(old.x, b)[1], jnp.exp(log_step + offset),
        lambda x: between.slopes(x, b), longest=plan.longest_drift, root=root,
    )  # fmt: skip
    yes = _accepted(key_accept, new.height(b) - old.height(b) + log_ratio)
    # Steps near the top of the spread say whether the top should move.
    top = offset[:, 0] > -0.25 * width - 0.05
    rate = jnp.sum(top & yes) / jnp.maximum(jnp.sum(top), 1)
    return _chosen(yes, new, old), jnp.mean(yes), rate


@eqx.filter_jit
def sweeps(
    between: Between, key: OneKey, population: Population, b: Scalar, log_step: Scalar, plan: Any
) -> tuple[Population, Scalar, Scalar]:
    """Apply rounds of ensemble and Langevin moves that leave the tempered density unchanged."""
    root = robust_cholesky(population.x - _nearest_mean(between.start, population.x))

    def body(carry, key_one):
        population, log_step = carry
        key_difference, key_langevin, key_crossover = jax.random.split(key_one, 3)
        # Two halves of the population change places in each call, so two calls move everyone.
        move = lambda p, k: (_differences(k, between, p, b, plan), None)  # noqa: E731
        population, _ = jax.lax.scan(move, population, jax.random.split(key_difference))
        population = crossover(key_crossover, between, population, b)
        population, acceptance, rate = _langevin(key_langevin, between, population, b, root, log_step, plan)
        # The first steps may be far too long or too short: halve or double, then settle.
        log_step = jnp.clip(log_step + plan.step_gain * (rate - plan.acceptance), -12.0, 1.0)
        return (population, log_step), acceptance

    keys = jax.random.split(key, plan.num_sweeps)
    (population, log_step), acceptance = jax.lax.scan(body, (population, log_step), keys)
    return population, log_step, acceptance[-1]
