"""Replica exchange: a reference where nothing is exact and chains alone stay in the mode they started in."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from pushforward.mcmc.chains import pick, start


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
    inverse = ladder(num_temperatures, lowest)
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


def ladder(count: int, lowest: float) -> Float[Array, " count"]:
    """Return inverse temperatures from 1 down to `lowest`, evenly spaced in their logs."""
    return jnp.logspace(0.0, jnp.log10(lowest), count)


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
    log_step = jnp.log(0.05) - 0.5 * jnp.log(inverse)
    return begin(target, flat.reshape(num_chains, inverse.size, target.dim), log_step)


def begin(
    target: Target,
    positions: Float[Array, "chains temperatures dim"],
    log_step: Float[Array, " temperatures"],
) -> Replicas:
    """Return replicas that begin where one says, with these logarithms of step sizes."""
    chains, levels, dim = positions.shape
    values = jax.vmap(target.log_density)(positions.reshape(-1, dim)).reshape(chains, levels)
    return Replicas(positions, values, log_step, jnp.zeros((), int))


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
    chains, levels, dim = state.positions.shape
    x, values, rates = moved(
        key_move,
        target,
        state.positions.reshape(-1, dim),
        state.values.reshape(-1),
        jnp.tile(inverse, chains),
        jnp.tile(state.log_step, chains),
        num_leapfrog,
    )
    x = x.reshape(chains, levels, dim)
    values, rates = (found.reshape(chains, levels) for found in (values, rates))
    count = state.steps + 1
    tuned = adapted(state.log_step, jnp.mean(rates, axis=0), count)
    log_step = jnp.where(count <= num_warmup, tuned, state.log_step)
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


def moved(
    key: Key[Array, ""],
    target: Target,
    x: Float[Array, "n dim"],
    values: Float[Array, " n"],
    inverse: Float[Array, " n"],
    log_step: Float[Array, " n"],
    num_leapfrog: int,
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Float[Array, " n"]]:
    """Return positions, their log densities and acceptance after a Hamiltonian move, each at its temperature.

    Loops are outside, `vmap` inside, and there is one: targets that are looked at one point at a time do not
    bear it otherwise.
    """
    key_momentum, key_step, key_accept = jax.random.split(key, 3)
    momentum = jax.random.normal(key_momentum, x.shape)
    # Jittered, so that no orbit closes on itself.
    step = (jnp.exp(log_step) * jax.random.uniform(key_step, values.shape, minval=0.5))[:, None]
    b, scores = inverse[:, None], jax.vmap(target.score)

    def leap(_, both):
        x, p = both
        x = x + 0.5 * step * p
        p = p + step * b * scores(x)
        return x + 0.5 * step * p, p

    new, p = jax.lax.fori_loop(0, num_leapfrog, leap, (x, momentum))
    new_values = jax.vmap(target.log_density)(new)
    change = inverse * (new_values - values) + 0.5 * jnp.sum(momentum**2 - p**2, axis=1)
    rates = jnp.exp(jnp.minimum(jnp.where(jnp.isfinite(change), change, -jnp.inf), 0.0))
    taken = jax.random.uniform(key_accept, values.shape) < rates
    return jnp.where(taken[:, None], new, x), jnp.where(taken, new_values, values), rates


def adapted(log_step: Array, rate: Array, count: Int[Array, ""], wanted: float = 0.7) -> Array:
    """Return step sizes nearer to those accepted as often as `wanted`, less so in each next step."""
    return log_step + 2.0 * (10.0 + count) ** -0.6 * (rate - wanted)


def _sample(key: Key[Array, ""], state: Replicas, n: int) -> Float[Array, "n dim"]:
    return pick(key, state.positions[:, 0], n)
