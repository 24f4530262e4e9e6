"""Every rule by which a sampler is good enough, hopeless, or not to be believed.

One currency: the effective share of importance weights, and log densities beside it.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import Latent
from pushforward.recipe.state import State
from pushforward.recipe.table import Judge, Maps, Recipe
from pushforward.training.loop import Row
from pushforward.weights import effective_share, log_weights, usual_share


class Weighing(NamedTuple):
    """How a sampler with a known density stands to its target."""

    efficiency: Float[Array, ""]
    """Effective sample size of importance sampling from it, as a share: one where it is exact."""
    log_z: Float[Array, ""]


@eqx.filter_jit
def weigh(
    key: Key[Array, ""], target: Target, latent: Latent, network: Any, num_draws: int, parts: int = 1
) -> Weighing:
    """Estimate efficiency, the median over some parts of the draws, and `log Z` by importance sampling."""
    w = log_weights(target, latent, network, latent.sample(key, num_draws))
    share = effective_share(w) if parts == 1 else usual_share(w, parts)
    return Weighing(share, logsumexp(w) - jnp.log(w.size))


def weigh_well(key: Key[Array, ""], target: Target, latent: Latent, network: Any, recipe: Recipe) -> Weighing:
    """Weigh as many draws as a last word takes."""
    return weigh(key, target, latent, network, draws_to_weigh(target.dim, recipe), recipe.reweight.parts)


def draws_to_weigh(dim: int, recipe: Recipe) -> int:
    """Return how many draws a last word takes: fewer where each costs more than it tells."""
    numbers = recipe.reweight
    return numbers.num_draws if dim <= recipe.dims.many else numbers.num_draws_many


@eqx.filter_jit
def heights(target: Target, x: Float[Array, "n dim"]) -> Float[Array, " n"]:
    """Return log densities; what is not finite is as low as can be."""
    found = jax.lax.map(target.log_density, x, batch_size=1024)
    return jnp.where(jnp.isfinite(found), found, -jnp.inf)


def some(key: Key[Array, ""], draws: Float[Array, "m dim"], count: int) -> Float[Array, "_n dim"]:
    """Return so many of the draws, any: those that follow each other are states of few particles."""
    return draws[jax.random.permutation(key, len(draws))[:count]]


# Particles.


def good_for_maps(dim: int, numbers: Maps) -> float:
    """Return the efficiency from which on particles need not be seen through a map, or through another."""
    if dim < numbers.good_until:
        return numbers.good
    return max(math.exp(-numbers.good_nats * dim), numbers.good_least)


def nothing_to_learn(state: State, recipe: Recipe) -> bool:
    """Whether the particles' law is the target already, by the weights of its own draws."""
    judged = recipe.training.judged and state.network is None
    return judged and state.efficiency > recipe.judge.learnt


# Training.


def learnt(row: Row, numbers: Judge) -> bool:
    """Whether a sampler seen like this has nothing left to learn."""
    return row.get("efficiency", 0.0) > numbers.learnt


def in_vain(row: Row, num_steps: int, dim: int, recipe: Recipe) -> bool:
    """Whether a map seen like this is nowhere near what the particles show."""
    numbers, below = recipe.judge, row.get("below", 0.0)
    patience = numbers.patience if below <= numbers.far * dim else numbers.impatience
    late = row["step"] >= patience * num_steps and can_fall_back(dim, recipe)
    # Where no draw has any weight, the share is not a number.
    return late and not row.get("efficiency", 1.0) >= numbers.in_vain and is_low(below, dim, numbers)


# The end.


def can_fall_back(dim: int, recipe: Recipe) -> bool:
    """Whether particles can stand for a law in so many dimensions."""
    return 1 < dim <= recipe.fallback.most_dim


def is_low(below: float, dim: int, numbers: Judge) -> bool:
    """Whether draws so many nats below particles, by their medians, lie much lower; not a number is."""
    return not below <= numbers.low + numbers.low_each * dim


def lies_low(
    key: Key[Array, ""],
    target: Target,
    latent: Latent,
    network: Any,
    draws: Float[Array, "m dim"],
    numbers: Judge,
) -> bool:
    """Whether a map's draws lie where the density is much lower than at the particles, by their medians."""
    key_ours, key_theirs = jax.random.split(key)
    z = latent.sample(key_ours, numbers.low_draws)
    ours = heights(target, jax.vmap(network)(z))
    theirs = jnp.median(heights(target, some(key_theirs, draws, numbers.low_draws)))
    # Draws that are nowhere are nothing to come back to.
    low = is_low(float(theirs - jnp.median(ours)), target.dim, numbers)
    return bool(jnp.isfinite(theirs)) and low


def least_efficiency(dim: int, numbers: Judge) -> float:
    """Return the efficiency below which a sampler in so many dimensions is `INACCURATE`."""
    return max(numbers.never, min(numbers.least, math.exp(-numbers.least_nats * dim)))


def against(dim: int, weighing: Weighing, log_z: float | None, numbers: Judge) -> str:
    """Return what speaks against a sampler, or nothing.

    Its own draws cannot tell of a mode that it has lost, but the particles can: by their `log Z`, found in
    another way.
    """
    efficiency, own = float(weighing.efficiency), float(weighing.log_z)
    least = least_efficiency(dim, numbers)
    if not efficiency >= least:
        return (
            f"a share of {efficiency:.2g} of the map's draws is effective, which in {dim} dimensions should "
            f"be {least:.2g} at least."
        )
    if log_z is not None and not abs(own - log_z) <= numbers.log_z_apart:
        return (
            f"`log Z` is {own:.2f} by the map's draws and {log_z:.2f} by the annealed particles: one of "
            "the two may lack mass that the other has."
        )
    return ""
