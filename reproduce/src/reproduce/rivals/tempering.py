"""Replica exchange: a reference where nothing is exact and chains alone stay in the mode they started in."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from pushforward.mcmc.replicas import Ladder, Replicas, begin, inverse_temperatures
from reproduce.rivals.chains import pick, start


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
    replica its neighbour's place. `sample` gives the replicas at 1.

    **Arguments:**

    - `target`: proper at every one of these temperatures, which a log density that falls off to
        minus infinity fast enough is.
    - `num_chains`: independent ladders.
    - `num_temperatures`, `coldest_share`: of a ladder; neighbours must be near enough to change places.
    - `num_warmup`: steps in which the step sizes are tuned.
    - `num_leapfrog`: per move.
    - `initial_scale`: replicas start at `N(0, initial_scale^2 I)`.
    """
    ladder = _ladder(target, num_temperatures, coldest_share, num_warmup, num_leapfrog)
    scale = jnp.asarray(check_positive(initial_scale, "initial_scale"))
    init = eqx.Partial(_init, ladder, num_chains=check_count(num_chains, "num_chains"), scale=scale)
    return Algorithm(init, ladder.step, _sample)


def _ladder(target: Target, levels: int, coldest: float, num_warmup: int, num_leapfrog: int) -> Ladder:
    levels = check_count(levels, "num_temperatures", at_least=2)
    lowest = check_positive(coldest, "coldest_share")
    if lowest >= 1:
        raise ValueError(
            f"`coldest_share` must be below 1, the inverse temperature of the target; got {lowest}."
        )
    warmup, leapfrog = check_count(num_warmup, "num_warmup"), check_count(num_leapfrog, "num_leapfrog")
    return Ladder(target, inverse_temperatures(levels, lowest), warmup, leapfrog)


def _init(ladder: Ladder, key: Key[Array, ""], *, num_chains: int, scale: Float[Array, ""]) -> Replicas:
    levels, dim = ladder.inverse.size, ladder.target.dim
    positions = start(key, num_chains * levels, dim, scale).reshape(num_chains, levels, dim)
    return begin(ladder.target, positions, jnp.log(0.05) - 0.5 * jnp.log(ladder.inverse))


def _sample(key: Key[Array, ""], state: Replicas, n: int) -> Float[Array, "n dim"]:
    return pick(key, state.positions[:, 0], n)
