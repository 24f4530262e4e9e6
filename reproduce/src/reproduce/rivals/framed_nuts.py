"""NUTS for posteriors with much data: in the Laplace frame, where only the step size is left to tune.

`nuts` finds a mass matrix by Stan's windows, and its first trajectories, made before it knows anything, are
a thousand gradients long. Where a gradient passes over half a million rows that is an hour's loss. Seen
through a frame that makes the target nearly standard, the mass matrix is the identity from the start, and
trajectories are of three to seven steps.
"""

from typing import Any, NamedTuple

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from reproduce.rivals.chains import pick

KERNEL = blackjax.nuts.build_kernel()
FORGET, DELAY, PULL = 0.75, 10.0, 0.05  # Hoffman and Gelman's constants of dual averaging


class Tuned(NamedTuple):
    """The chains, and where dual averaging of their common step size stands."""

    chains: Any
    log_step: Float[Array, ""]
    log_average: Float[Array, ""]
    shortfall: Float[Array, ""]
    steps: Int[Array, ""]


def algorithm(
    target: Target,
    num_chains: int = 4,
    num_warmup: int = 60,
    target_acceptance: float = 0.8,
    max_doublings: int = 6,
    first_step_size: float = 0.4,
) -> Algorithm:
    """Return NUTS with unit mass; the first `num_warmup` steps tune a step size that all chains share.

    `sample` gives the chains' present positions: run the steps and keep what they report as `position`, or
    use `positions`.

    **Arguments:**

    - `target`: in a frame that makes it nearly standard, `InFrame(target, frame)`.
    - `num_chains`: they start at independent standard normals.
    - `num_warmup`, `target_acceptance`, `first_step_size`: of dual averaging.
    - `max_doublings`: a trajectory has at most `2^max_doublings - 1` steps.
    """
    first = check_positive(first_step_size, "first_step_size")
    sampler = _Nuts(
        target,
        log_step=jnp.asarray(jnp.log(first), float),
        anchor=jnp.log(2.0 * first),
        acceptance=check_positive(target_acceptance, "target_acceptance"),
        num_chains=check_count(num_chains, "num_chains"),
        num_warmup=check_count(num_warmup, "num_warmup"),
        max_doublings=check_count(max_doublings, "max_doublings"),
    )
    return Algorithm(sampler.init, sampler.step, _sample)


@eqx.filter_jit
def positions(
    algorithm: Algorithm, key: Key[Array, ""], state: Tuned, first: Int[Array, ""], num_sweeps: int
) -> tuple[Tuned, Float[Array, "sweeps chains dim"], dict[str, Float[Array, " sweeps"]]]:
    """Take `num_sweeps` steps of all chains; step `i` uses `fold_in(key, i)`, so that runs can be joined."""

    def sweep(state, i):
        state, info = algorithm.step(jax.random.fold_in(key, i), state)
        return state, (state.chains.position, info)

    state, (draws, info) = jax.lax.scan(sweep, state, first + jnp.arange(num_sweeps))
    return state, draws, info


class _Nuts(eqx.Module):
    target: Target
    log_step: Float[Array, ""]
    anchor: Float[Array, ""]
    acceptance: float
    num_chains: int = eqx.field(static=True)
    num_warmup: int = eqx.field(static=True)
    max_doublings: int = eqx.field(static=True)

    def init(self, key: Key[Array, ""]) -> Tuned:
        start = jax.random.normal(key, (self.num_chains, self.target.dim))
        chains = jax.vmap(lambda x: blackjax.nuts.init(x, self.target.log_density))(start)
        # Of a type that steps do not change, or the first step and the second would be two programs.
        return Tuned(chains, self.log_step, self.log_step, jnp.zeros(()), jnp.zeros((), int))

    def step(self, key: Key[Array, ""], state: Tuned) -> tuple[Tuned, dict[str, Any]]:
        mass = jnp.ones(self.target.dim)
        tuning = state.steps < self.num_warmup
        step_size = jnp.exp(jnp.where(tuning, state.log_step, state.log_average))

        def one_chain(key, chain):
            return KERNEL(key, chain, self.target.log_density, step_size, mass, self.max_doublings)

        keys = jax.random.split(key, state.chains.position.shape[0])
        chains, info = jax.vmap(one_chain)(keys, state.chains)
        rate = jnp.mean(jnp.nan_to_num(info.acceptance_rate))
        moved = state._replace(chains=chains)
        tuned = _averaged(moved, rate, self.acceptance, self.anchor)
        state = jax.tree.map(lambda a, b: jnp.where(tuning, a, b), tuned, moved)
        return state._replace(steps=state.steps + ~tuning), {
            "acceptance": rate,
            "divergent": jnp.mean(info.is_divergent),
            "leapfrog_steps": jnp.mean(info.num_integration_steps),
            "longest": jnp.max(info.num_integration_steps).astype(float),
            "step_size": step_size,
        }


def _averaged(state: Tuned, rate: Float[Array, ""], wanted: float, anchor: Float[Array, ""]) -> Tuned:
    """Take one step of dual averaging (Hoffman and Gelman 2014, algorithm 5)."""
    count = state.steps + 1
    share = 1.0 / (count + DELAY)
    shortfall = (1.0 - share) * state.shortfall + share * (wanted - rate)
    log_step = anchor - jnp.sqrt(count) / PULL * shortfall
    memory = count**-FORGET
    average = memory * log_step + (1.0 - memory) * state.log_average
    return Tuned(state.chains, log_step, average, shortfall, count)


def _sample(key: Key[Array, ""], state: Tuned, n: int) -> Float[Array, "n dim"]:
    return pick(key, state.chains.position, n)
