"""How a study asks for draws."""

from collections.abc import Callable
from typing import TypeAlias

import jax
from jaxtyping import Array, Float, Key

Draw: TypeAlias = Callable[[Key[Array, ""], int], Float[Array, "n dim"]]
"""`draw(key, n)`: draws of a method."""


def from_pool(pool: Float[Array, "m dim"]) -> Draw:
    """Return `draw(key, n)`: a random choice from a fixed set, without repeats."""

    def draw(key: Key[Array, ""], n: int) -> Float[Array, "n dim"]:
        return pool[jax.random.permutation(key, pool.shape[0])[:n]]

    return draw
