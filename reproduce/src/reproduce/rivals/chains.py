"""What all populations share, be they chains or particles: a start, steps, and handing out the draws."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Algorithm
from pushforward.checks import check_count
from pushforward.training.loop import nothing, take_steps


def start(key: Key[Array, ""], num_chains: int, dim: int, scale: Float[Array, ""]) -> Float[Array, "n dim"]:
    """Return starting points from `N(0, scale^2 I)`."""
    return scale * jax.random.normal(key, (num_chains, dim))


@eqx.filter_jit
def run_chunk(
    algorithm: Algorithm, key: Key[Array, ""], state: Any, first: Int[Array, ""], num_steps: Any
) -> tuple[Any, dict[str, Array]]:
    """Take steps as the training loop does; return the state, and the means of what they report."""
    state, total = take_steps(algorithm, key, state, nothing(algorithm, key, state), first, num_steps)
    return state, jax.tree.map(lambda v: v / num_steps, total)


def pick(key: Key[Array, ""], positions: Float[Array, "population dim"], n: int) -> Float[Array, "n dim"]:
    """Return `n` of the positions: all of them as they stand, or a random choice without repeats.

    A population gives as many draws as it has members. To repeat some would look like more draws
    and be none.
    """
    population = positions.shape[0]
    if check_count(n, "n") > population:
        raise ValueError(
            f"`n` must be at most the number of chains or particles, {population}; got {n}. "
            f"Build the algorithm with {n} of them."
        )
    if n == population:
        return positions
    return positions[jax.random.permutation(key, population)[:n]]


def rms(values: Float[Array, "n dim"]) -> Float[Array, ""]:
    """Return the root mean square length of the rows: one number that shows a runaway."""
    return jnp.sqrt(jnp.mean(jnp.sum(values**2, axis=1)))
