"""Replicas of chains at several temperatures, which change places."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pushforward.base import Target
from pushforward.mcmc import Each, OneKey, Points, Scalar


class Replicas(NamedTuple):
    """Positions and log densities of every chain at every temperature, and each temperature's step size."""

    positions: Float[Array, "chains temperatures dim"]
    values: Float[Array, "chains temperatures"]
    log_step: Float[Array, " temperatures"]
    steps: Int[Array, ""]


class Ladder(eqx.Module):
    """Inverse temperatures and how replicas move at each."""

    target: Target
    inverse: Float[Array, " temperatures"]
    num_warmup: int = eqx.field(static=True)
    num_leapfrog: int = eqx.field(static=True)

    def step(self, key: OneKey, state: Replicas) -> tuple[Replicas, dict[str, Scalar]]:
        """Move every replica, then offer it its neighbour's place: even pairs and odd pairs in turn.

        A pair changes places with probability `min(1, exp((b_i - b_j) (log q(x_j) - log q(x_i))))`.
        """
        key_move, key_swap = jax.random.split(key)
        shape, inverse, count = state.positions.shape, self.inverse, state.steps + 1
        chains, levels, dim = shape
        flat = state.positions.reshape(-1, dim), state.values.reshape(-1)
        b, log_step = jnp.tile(inverse, chains), jnp.tile(state.log_step, chains)
        x, values, rates = moved(key_move, self.target, *flat, b, log_step, self.num_leapfrog)
        x, values, rates = x.reshape(shape), values.reshape(shape[:2]), rates.reshape(shape[:2])
        tuned = adapted(state.log_step, jnp.mean(rates, axis=0), count)
        lower = jnp.arange(levels - 1)
        offered = lower % 2 == count % 2
        ratio = (inverse[:-1] - inverse[1:]) * (values[:, 1:] - values[:, :-1])
        taken = offered & (jnp.log(jax.random.uniform(key_swap, ratio.shape)) < ratio)
        order = jnp.broadcast_to(jnp.arange(levels), (chains, levels))
        order = order.at[:, :-1].add(taken).at[:, 1:].add(-taken.astype(int))
        x = jnp.take_along_axis(x, order[..., None], axis=1)
        values = jnp.take_along_axis(values, order, axis=1)
        exchanges = jnp.sum(taken) / (chains * jnp.maximum(jnp.sum(offered), 1))
        log_step = jnp.where(count <= self.num_warmup, tuned, state.log_step)
        info = {"acceptance": jnp.mean(rates[:, 0]), "exchanges": exchanges}
        return Replicas(x, values, log_step, count), info


@eqx.filter_jit
def cold_positions(
    step: Callable[..., Any], key: OneKey, state: Replicas, first: Int[Array, ""], num_kept: int, thin: int
) -> tuple[Replicas, Float[Array, "kept chains dim"], dict[str, Float[Array, " kept"]]]:
    """Take `num_kept * thin` steps; return the replicas at 1 after every `thin`. Runs can be joined."""

    def sweep(state, i):
        def inner(j, both):
            return step(jax.random.fold_in(key, (first + i) * thin + j), both[0])

        blank = {"acceptance": jnp.zeros(()), "exchanges": jnp.zeros(())}
        state, info = jax.lax.fori_loop(0, thin, inner, (state, blank))
        return state, (state.positions[:, 0], info)

    state, (draws, info) = jax.lax.scan(sweep, state, jnp.arange(num_kept))
    return state, draws, info


def inverse_temperatures(count: int, lowest: float) -> Float[Array, " count"]:
    """Return inverse temperatures from 1 down to `lowest`, evenly spaced in their logs."""
    return jnp.logspace(0.0, jnp.log10(lowest), count)


def begin(
    target: Target,
    positions: Float[Array, "chains temperatures dim"],
    log_step: Float[Array, " temperatures"],
) -> Replicas:
    """Return replicas that begin where one says, with these logarithms of step sizes."""
    chains, levels, dim = positions.shape
    values = jax.vmap(target.log_density)(positions.reshape(-1, dim)).reshape(chains, levels)
    return Replicas(positions, values, log_step, jnp.zeros((), int))


def moved(
    key: OneKey, target: Target, x: Points, values: Each, inverse: Each, log_step: Each, num_leapfrog: int
) -> tuple[Points, Each, Each]:
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
