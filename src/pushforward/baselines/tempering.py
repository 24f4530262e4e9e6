"""Replica exchange: a reference where nothing is exact and chains alone stay in the mode they started in."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Algorithm, Target
from pushforward.baselines.chains import pick, start
from pushforward.checks import check_count, check_positive

WANTED = 0.7
"""Acceptance of the Hamiltonian moves that the warm-up tunes each temperature's step to."""


class Replicas(NamedTuple):
    """Positions and log densities of every chain at every temperature, and each temperature's step size."""

    positions: Float[Array, "chains temperatures dim"]
    values: Float[Array, "chains temperatures"]
    log_step: Float[Array, " temperatures"]
    steps: Int[Array, ""]


def algorithm(
    target: Target,
    num_chains: int = 16,
    num_temperatures: int = 8,
    coldest_share: float = 0.1,
    num_warmup: int = 500,
    num_leapfrog: int = 8,
    initial_scale: float = 1.0,
) -> Algorithm:
    """Return chains at inverse temperatures from 1 down to `coldest_share`, evenly spaced in their logs.

    One step moves every replica by `num_leapfrog` leapfrog steps with an accept test, then offers every
    replica its neighbour's place: even pairs and odd pairs in turn, accepted with probability
    `min(1, exp((b_i - b_j) (log q(x_j) - log q(x_i))))`. `sample` gives the replicas at 1.

    **Arguments:**

    - `target`: proper at every one of these temperatures, which a log density that falls off to
        minus infinity fast enough is.
    - `num_chains`: independent ladders.
    - `num_temperatures`, `coldest_share`: of a ladder; neighbours must be near enough to change places.
    - `num_warmup`: steps in which the step sizes are tuned.
    - `num_leapfrog`: per move.
    - `initial_scale`: replicas start at `N(0, initial_scale^2 I)`.
    """
    num_temperatures = check_count(num_temperatures, "num_temperatures", at_least=2)
    lowest = check_positive(coldest_share, "coldest_share")
    if lowest >= 1:
        raise ValueError(
            f"`coldest_share` must be below 1, the inverse temperature of the target; got {lowest}."
        )
    inverse = jnp.logspace(0.0, jnp.log10(lowest), num_temperatures)
    return Algorithm(
        init=eqx.Partial(
            _init,
            target=target,
            num_chains=check_count(num_chains, "num_chains"),
            inverse=inverse,
            scale=jnp.asarray(check_positive(initial_scale, "initial_scale")),
        ),
        step=eqx.Partial(
            _step,
            target=target,
            inverse=inverse,
            num_warmup=check_count(num_warmup, "num_warmup"),
            num_leapfrog=check_count(num_leapfrog, "num_leapfrog"),
        ),
        sample=_sample,
    )


@eqx.filter_jit
def cold_positions(
    algorithm: Algorithm,
    key: Key[Array, ""],
    state: Replicas,
    first: Int[Array, ""],
    num_kept: int,
    thin: int,
) -> tuple[Replicas, Float[Array, "kept chains dim"], dict[str, Float[Array, " kept"]]]:
    """Take `num_kept * thin` steps and return the replicas at 1 after every `thin`; runs can be joined."""

    def sweep(state, i):
        def inner(j, both):
            return algorithm.step(jax.random.fold_in(key, (first + i) * thin + j), both[0])

        blank = {"acceptance": jnp.zeros(()), "exchanges": jnp.zeros(())}
        state, info = jax.lax.fori_loop(0, thin, inner, (state, blank))
        return state, (state.positions[:, 0], info)

    state, (draws, info) = jax.lax.scan(sweep, state, jnp.arange(num_kept))
    return state, draws, info


def _init(
    key: Key[Array, ""],
    *,
    target: Target,
    num_chains: int,
    inverse: Float[Array, " t"],
    scale: Float[Array, ""],
) -> Replicas:
    flat = start(key, num_chains * inverse.size, target.dim, scale)
    positions = flat.reshape(num_chains, inverse.size, target.dim)
    values = jax.vmap(jax.vmap(target.log_density))(positions)
    return Replicas(positions, values, jnp.log(0.05) - 0.5 * jnp.log(inverse), jnp.zeros((), int))


def _step(
    key: Key[Array, ""],
    state: Replicas,
    *,
    target: Target,
    inverse: Float[Array, " t"],
    num_warmup: int,
    num_leapfrog: int,
) -> tuple[Replicas, dict[str, Any]]:
    key_move, key_swap = jax.random.split(key)
    chains, levels, _ = state.positions.shape
    keys = jax.random.split(key_move, (chains, levels))

    def move(key, x, value, b, log_step):
        return _hamiltonian(key, target, x, value, b, jnp.exp(log_step), num_leapfrog)

    along = jax.vmap(move, in_axes=(0, 0, 0, 0, 0))
    x, values, rates = jax.vmap(along, in_axes=(0, 0, 0, None, None))(
        keys, state.positions, state.values, inverse, state.log_step
    )
    count = state.steps + 1
    gain = jnp.where(count <= num_warmup, 2.0 * (10.0 + count) ** -0.6, 0.0)
    log_step = state.log_step + gain * (jnp.mean(rates, axis=0) - WANTED)
    # Even pairs in even steps, odd pairs in odd ones: every neighbour in turn.
    lower = jnp.arange(levels - 1)
    offered = lower % 2 == count % 2
    ratio = (inverse[:-1] - inverse[1:]) * (values[:, 1:] - values[:, :-1])
    taken = offered & (jnp.log(jax.random.uniform(key_swap, ratio.shape)) < ratio)
    order = jnp.broadcast_to(jnp.arange(levels), (chains, levels))
    order = order.at[:, :-1].add(taken).at[:, 1:].add(-taken.astype(int))
    x = jnp.take_along_axis(x, order[..., None], axis=1)
    values = jnp.take_along_axis(values, order, axis=1)
    info = {
        "acceptance": jnp.mean(rates[:, 0]),
        "exchanges": jnp.sum(taken) / (chains * jnp.maximum(jnp.sum(offered), 1)),
    }
    return Replicas(x, values, log_step, count), info


def _hamiltonian(key, target: Target, x, value, b, step, num_leapfrog: int):
    key_momentum, key_step, key_accept = jax.random.split(key, 3)
    momentum = jax.random.normal(key_momentum, x.shape)
    # Jittered, so that no orbit closes on itself.
    step = step * jax.random.uniform(key_step, minval=0.5, maxval=1.0)

    def leap(_, both):
        x, p = both
        x = x + 0.5 * step * p
        p = p + step * b * target.score(x)
        return x + 0.5 * step * p, p

    new, p = jax.lax.fori_loop(0, num_leapfrog, leap, (x, momentum))
    new_value = target.log_density(new)
    change = b * (new_value - value) + 0.5 * (jnp.sum(momentum**2) - jnp.sum(p**2))
    rate = jnp.exp(jnp.minimum(jnp.where(jnp.isfinite(change), change, -jnp.inf), 0.0))
    accepted = jax.random.uniform(key_accept) < rate
    return jnp.where(accepted, new, x), jnp.where(accepted, new_value, value), rate


def _sample(key: Key[Array, ""], state: Replicas, n: int) -> Float[Array, "n dim"]:
    return pick(key, state.positions[:, 0], n)
