"""Adaptive tempered sequential Monte Carlo with ensemble moves.

Particles go from a start law `q0` to the target along `q0^(1-b) q^b`; each next `b` keeps the effective
sample size at a fixed share, and a few sweeps of Markov moves at each `b` restore diversity. Gives draws,
their mode weights and `log Z`, from the log density alone.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Target
from pushforward.latents import Latent
from pushforward.mcmc import Each, Scalar
from pushforward.mcmc.moves import Between, Population, sweeps
from pushforward.weights import effective_share


class Annealed(NamedTuple):
    """What particles came to."""

    draws: Float[Array, "m dim"]
    log_z: float
    temperatures: int
    acceptance: float
    start_efficiency: float  # effective share of plain importance sampling from the start

    def row(self) -> dict[str, float]:
        """Return what is told of a round."""
        return {name: value for name, value in self._asdict().items() if name != "draws"}


@eqx.filter_jit
def next_temperature(log_ratio: Each, b: Scalar, ess_share: float) -> Scalar:
    """Return the largest `b' <= 1` whose importance weights keep the wanted effective sample size."""

    def share(candidate):
        return effective_share((candidate - b) * log_ratio)

    def body(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        good = share(middle) >= ess_share
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    low, _ = jax.lax.fori_loop(0, 40, body, (b, jnp.asarray(1.0)))
    return jnp.where(share(jnp.asarray(1.0)) >= ess_share, 1.0, jnp.maximum(low, b + 1e-6))


@eqx.filter_jit
def resample(key: Key[Array, ""], population: Population, log_weights: Float[Array, " n"]) -> Population:
    """Systematic resampling."""
    n = log_weights.size
    cumulative = jnp.cumsum(jax.nn.softmax(log_weights))
    positions = (jnp.arange(n) + jax.random.uniform(key)) / n
    rows: Int[Array, " n"] = jnp.minimum(jnp.searchsorted(cumulative, positions), n - 1)
    return Population(*(a[rows] for a in population))


def anneal(key: Key[Array, ""], target: Target, start: Latent, plan: Any) -> Annealed:
    """Carry particles from `start` to `target` by a `plan`, the recipe's `Annealing` for its dimension."""
    between = Between(target, start)
    key_start, key_path, key_end = jax.random.split(key, 3)
    population = eqx.filter_jit(between.population)(start.sample(key_start, plan.num_particles))
    efficiency = float(effective_share(population.log_target - population.log_start))
    b, log_step, acceptance, one = *(jnp.asarray(0.0) for _ in range(3)), jnp.asarray(1.0)
    log_z, count, snapshots = 0.0, 0, []
    while float(b) < 1.0 and count < plan.most_temperatures:
        key_resample, key_move = jax.random.split(jax.random.fold_in(key_path, count))
        log_ratio = jnp.maximum(population.log_target - population.log_start, -1e30)
        new = next_temperature(log_ratio, b, plan.ess_share)
        log_weights = (new - b) * log_ratio
        log_z += float(logsumexp(log_weights)) - np.log(plan.num_particles)
        population = resample(key_resample, population, log_weights)
        population, log_step, acceptance = sweeps(between, key_move, population, new, log_step, plan)
        b, count = new, count + 1
    for i in range(plan.num_snapshots):
        key_one = jax.random.fold_in(key_end, i)
        population, log_step, acceptance = sweeps(between, key_one, population, one, log_step, plan)
        snapshots.append(population.x)
    return Annealed(jnp.concatenate(snapshots), log_z, count, float(acceptance), efficiency)
