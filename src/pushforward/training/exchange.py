"""Particles that go on by replica exchange: what tempered particles got wrong is put right by walking on.

Particles that share few ancestors have the wrong share in every basin. Replicas of them at higher
temperatures cross from basin to basin and change places with those at one, whose shares become right.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.baselines import tempering
from pushforward.baselines.tempering import Replicas

LADDERS, DRAWS, HOTTEST = 64, 128, 0.1
"""Ladders at most, since to forget where it began takes a walk many steps, not many walkers; draws that there
are for each, of which there are few where the target is dear to ask; and the lowest inverse temperature."""

LEVELS, LEAPFROG = 8, 8
"""Temperatures of a ladder, and leapfrog steps of a move."""

CROWD, HEATING = 32, 12
"""Particles for each ladder while they are heated, and as many chains at the end; moves at a temperature."""

WARMUP, PIECE, THIN = 128, 8, 8
"""Steps that tune the sizes of steps; positions that a piece of the walk keeps of a ladder, and steps between
two of them."""

FEWEST, USUAL, MOST = 8, 40, 320
"""Pieces of a walk: a shorter one has not forgotten where it began; how many there are where no clock says;
and at most, where one does."""

SPREAD, STRIDE = 8, 24
"""Positions that are kept of each of many single chains that begin along the walk, and steps between two."""


def exchanged(
    key: Key[Array, ""], target: Target, draws: Float[Array, "m dim"], deadline: float = float("inf")
) -> Float[Array, "_n dim"]:
    """Return positions that replica exchange leads to from some of the draws; the draws, without the time.

    Replicas that are hot are needed for the shares of basins only, and one of eight in a ladder can be kept.
    So along the walk's second half, whose shares are right, many chains begin that have the target's own
    temperature, and all of these are kept.

    **Arguments:**

    - `target`: in coordinates in which it is about as wide in all directions.
    - `draws`: of which the density is finite; they may be of the right places with wrong shares.
    - `deadline`: on `time.monotonic()`'s clock; the walk goes on for as long as it lasts, but not for ever.
    """
    if time.monotonic() > deadline:
        return draws
    key_heat, key_run, key_spread = jax.random.split(key, 3)
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
    # A piece takes less than this; like the first piece it is mostly compilation.
    taken, walked = time.monotonic() - began, []
    # What the chains will take after the walk, in pieces.
    after = SPREAD * STRIDE * CROWD / (PIECE * THIN * LEVELS)
    usual = max(FEWEST, USUAL * ladders // LADDERS)
    for number in range(usual if deadline == float("inf") else MOST):
        began = time.monotonic()
        ahead = 1.0 + after + max(0, FEWEST - number) if number > 1 else 1.0
        if began + ahead * taken > deadline:
            break
        first = jnp.asarray(number * PIECE)
        state, positions, _ = tempering.cold_positions(algorithm, key_run, state, first, PIECE, THIN)
        jax.block_until_ready(positions)
        taken = time.monotonic() - began
        walked.append(positions)
    if len(walked) < FEWEST:
        return draws
    along = jnp.concatenate(walked[len(walked) // 2 :]).reshape(-1, target.dim)
    return spread(key_spread, target, along, CROWD * ladders, state.log_step[0])


def spread(
    key: Key[Array, ""],
    target: Target,
    starts: Float[Array, "m dim"],
    count: int,
    log_step: Float[Array, ""],
) -> Float[Array, "_n dim"]:
    """Return positions of `count` chains of the target's own temperature, which begin at some of `starts`."""
    key_starts, key_moves = jax.random.split(key)
    x = starts[jax.random.choice(key_starts, len(starts), (count,))]
    both, kept = (x, jax.lax.map(target.log_density, x, batch_size=1024)), []
    # Stride by stride, so that an interrupt is heard.
    for key_stride in jax.random.split(key_moves, SPREAD):
        both = jax.block_until_ready(_stride(key_stride, target, both, log_step))
        kept.append(both[0])
    return jnp.concatenate(kept)


@eqx.filter_jit
def _stride(
    key: Key[Array, ""],
    target: Target,
    both: tuple[Float[Array, "n dim"], Float[Array, " n"]],
    log_step: Float[Array, ""],
) -> tuple[Float[Array, "n dim"], Float[Array, " n"]]:
    ones = jnp.ones(len(both[1]))

    def move(both, key):
        x, values = both
        x, values, _ = tempering.moved(key, target, x, values, ones, log_step * ones, LEAPFROG)
        return (x, values), None

    return jax.lax.scan(move, both, jax.random.split(key, STRIDE))[0]


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
