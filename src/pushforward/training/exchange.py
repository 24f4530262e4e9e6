"""Particles that go on by replica exchange: what tempered particles got wrong is put right by walking on.

Particles that share few ancestors have the wrong share in every basin. Replicas of them at higher
temperatures cross from basin to basin and change places with those at one, whose shares become right.
"""

import time
from math import ceil

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.baselines import tempering
from pushforward.baselines.tempering import Replicas

LADDERS, DRAWS, HOTTEST = 256, 128, 0.1
"""Ladders at most; draws that there are for each, of which there are few where the target is dear to ask;
and the lowest inverse temperature."""

LEVELS, LEAPFROG = 8, 8
"""Temperatures of a ladder, and leapfrog steps of a move."""

CROWD, HEATING = 8, 12
"""Particles that stand for a ladder while they are heated, and their moves at each temperature."""

WARMUP, KEPT, PIECES, THIN = 128, 64, 8, 8
"""Steps that tune the sizes of steps, positions kept of a ladder, in so many pieces, steps between two."""


def exchanged(
    key: Key[Array, ""], target: Target, draws: Float[Array, "m dim"], deadline: float = float("inf")
) -> Float[Array, "_n dim"]:
    """Return positions of replicas that start at some of the draws; the draws, if there is too little time.

    **Arguments:**

    - `target`: in coordinates in which it is about as wide in all directions.
    - `draws`: of which the density is finite; they may be of the right places with wrong shares.
    - `deadline`: on `time.monotonic()`'s clock; no piece is begun that would take longer.
    """
    if time.monotonic() > deadline:
        return draws
    key_heat, key_run = jax.random.split(key)
    ladders = max(1, min(LADDERS, len(draws) // DRAWS))
    algorithm = tempering.algorithm(
        target,
        num_chains=ladders,
        num_temperatures=LEVELS,
        coldest_share=HOTTEST,
        num_warmup=WARMUP,
        num_leapfrog=LEAPFROG,
    )
    began = time.monotonic()
    state = jax.block_until_ready(heated(key_heat, target, draws, ladders))
    # A piece takes less than this, which is compilation too.
    taken = time.monotonic() - began
    piece, kept = KEPT // PIECES, []
    warm = ceil(WARMUP / (piece * THIN))
    # The warm-up in pieces of the same size, so that one program serves both.
    for number in range(warm + PIECES):
        began = time.monotonic()
        if began + taken > deadline:
            break
        state, positions, _ = tempering.cold_positions(
            algorithm, key_run, state, jnp.asarray(number * piece), piece, THIN
        )
        jax.block_until_ready(positions)
        # The first piece is mostly compilation.
        taken = time.monotonic() - began if number else taken
        if number >= warm:
            kept.append(positions)
    # A walk cut short has fewer positions than the draws, and those of few ladders are much alike.
    return jnp.concatenate(kept).reshape(-1, target.dim) if len(kept) >= PIECES // 2 else draws


@eqx.filter_jit
def heated(key: Key[Array, ""], target: Target, draws: Float[Array, "m dim"], ladders: int) -> Replicas:
    """Return ladders whose every temperature has about the shares of basins that belong to it.

    From one temperature to the next particles are resampled by `q^(b' - b)` and moved. Replicas that all
    began as draws would bring too many from narrow basins, whose share falls with the temperature, back down.
    """
    key_draws, key_levels = jax.random.split(key)
    x = draws[jax.random.choice(key_draws, len(draws), (ladders * CROWD,))]
    values = jax.vmap(target.log_density)(x)

    def level(carry, now):
        x, values, log_step, before = carry
        key, b = now
        key_pick, key_moves = jax.random.split(key)
        rows = jax.random.categorical(key_pick, (b - before) * values, shape=values.shape)
        everywhere = jnp.full(values.shape, b)

        def move(carry, now):
            (x, values, log_step), (key, count) = carry, now
            steps = jnp.full(values.shape, log_step)
            x, values, rates = tempering.moved(key, target, x, values, everywhere, steps, LEAPFROG)
            return (x, values, tempering.adapted(log_step, jnp.mean(rates), count)), None

        moves = (jax.random.split(key_moves, HEATING), jnp.arange(HEATING))
        (x, values, log_step), _ = jax.lax.scan(move, (x[rows], values[rows], log_step), moves)
        return (x, values, log_step, b), (x[:ladders], log_step)

    begin = (x, values, jnp.log(0.05), jnp.asarray(1.0))
    levels = (jax.random.split(key_levels, LEVELS), tempering.ladder(LEVELS, HOTTEST))
    _, (positions, log_steps) = jax.lax.scan(level, begin, levels)
    return tempering.begin(target, jnp.swapaxes(positions, 0, 1), log_steps)
