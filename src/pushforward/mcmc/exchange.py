"""Replica exchange: particles whose basins have wrong shares go on walking, until the shares are right.

Particles that share few ancestors have the wrong share in every basin. Replicas of them at higher
temperatures cross from basin to basin and change places with those at one, whose shares become right.
"""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.mcmc import Each, OneKey, Points, Scalar, replicas
from pushforward.mcmc.replicas import cold_positions, moved


def exchanged(
    key: OneKey, target: Target, draws: Float[Array, "m dim"], walk: Any, deadline: float = float("inf")
) -> Float[Array, "_n dim"]:
    """Return positions that replica exchange leads to from some of the draws; the draws, without the time.

    Replicas that are hot are needed for the shares of basins only, and one of eight in a ladder can be kept.
    So along the walk's second half, whose shares are right, many chains begin that have the target's own
    temperature, and all of these are kept.

    The `target` is about as wide in all directions, and finite at the `draws`. `walk` is the recipe's
    `Fallback`. Until the `deadline`, on `time.monotonic()`'s clock, the walk goes on, but not for ever.
    """
    began = time.monotonic()
    if began > deadline:
        return draws
    key_heat, key_run, key_spread = jax.random.split(key, 3)
    ladders = max(1, min(walk.ladders, len(draws) // walk.draws_each))
    state = jax.block_until_ready(heated(key_heat, target, draws, ladders, walk))
    inverse = replicas.inverse_temperatures(walk.levels, walk.hottest)
    ladder = replicas.Ladder(target, inverse, walk.num_warmup, walk.num_leapfrog)
    # A piece takes less than this; like the first piece it is mostly compilation.
    taken, walked = time.monotonic() - began, []
    # What the chains will take after the walk, in pieces.
    after = walk.spread * walk.stride * walk.crowd / (walk.piece * walk.thin * walk.levels)
    usual = max(walk.least_pieces, walk.usual_pieces * ladders // walk.ladders)
    for number in range(usual if deadline == float("inf") else walk.most_pieces):
        began = time.monotonic()
        ahead = 1.0 + after + max(0, walk.least_pieces - number) if number > 1 else 1.0
        if began + ahead * taken > deadline:
            break
        first = jnp.asarray(number * walk.piece)
        state, positions, _ = cold_positions(ladder.step, key_run, state, first, walk.piece, walk.thin)
        walked.append(jax.block_until_ready(positions))
        taken = time.monotonic() - began
    if len(walked) < walk.least_pieces:
        return draws
    along = jnp.concatenate(walked[len(walked) // 2 :]).reshape(-1, target.dim)
    key_starts, key_moves = jax.random.split(key_spread)
    x = along[jax.random.choice(key_starts, len(along), (walk.crowd * ladders,))]
    chains, kept = (x, jax.lax.map(target.log_density, x, batch_size=1024), state.log_step[0]), []
    # Stride by stride, so that an interrupt is heard.
    for key_stride in jax.random.split(key_moves, walk.spread):
        chains = jax.block_until_ready(_alike(key_stride, target, chains, inverse[0], walk, walk.stride))
        kept.append(chains[0])
    return jnp.concatenate(kept)


@eqx.filter_jit
def heated(
    key: OneKey, target: Target, draws: Float[Array, "m dim"], ladders: int, walk: Any
) -> replicas.Replicas:
    """Return ladders whose every temperature has about the shares of basins that belong to it.

    From one temperature to the next particles are resampled by `q^(b' - b)` and moved. Replicas that all
    began as draws would bring too many from narrow basins, whose share falls with the temperature, back down.
    """
    key_draws, key_levels = jax.random.split(key)
    x = draws[jax.random.choice(key_draws, len(draws), (ladders * walk.crowd,))]

    def level(carry, now):
        (x, values, log_step), before = carry
        key, b = now
        key_pick, key_moves = jax.random.split(key)
        rows = jax.random.categorical(key_pick, (b - before) * values, shape=values.shape)
        chains = x[rows], values[rows], log_step
        chains = _alike(key_moves, target, chains, b, walk, walk.heating, tunes=True)
        return (chains, b), (chains[0][:ladders], chains[2])

    chains = x, jax.vmap(target.log_density)(x), jnp.log(walk.first_step)
    keys = jax.random.split(key_levels, walk.levels)
    levels = keys, replicas.inverse_temperatures(walk.levels, walk.hottest)
    _, (positions, log_steps) = jax.lax.scan(level, (chains, jnp.asarray(1.0)), levels)
    return replicas.begin(target, jnp.swapaxes(positions, 0, 1), log_steps)


Chains = tuple[Points, Each, Scalar]
"""Positions, log densities, and the logarithm of the step size."""


@eqx.filter_jit
def _alike(
    key: OneKey, target: Target, chains: Chains, b: Scalar, walk: Any, count: int, *, tunes: bool = False
) -> Chains:
    """Move chains that all have one temperature, so many times."""
    ones = jnp.ones(len(chains[1]))

    def move(carry, now):
        (x, values, log_step), (key, i) = carry, now
        x, values, rates = moved(key, target, x, values, b * ones, log_step * ones, walk.num_leapfrog)
        return (x, values, replicas.adapted(log_step, jnp.mean(rates), i) if tunes else log_step), None

    return jax.lax.scan(move, chains, (jax.random.split(key, count), jnp.arange(count)))[0]
