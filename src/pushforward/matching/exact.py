"""Exact score matching (Hyvarinen 2005): the whole divergence, one tangent a coordinate."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Score
from pushforward.divergence import value_and_divergence
from pushforward.matching.base import Matching


class Exact(Matching):
    """`E[ |s(x)|^2 + 2 div s(x) ]`, whose minimiser is the score of the draws' own law.

    The cost grows with `dim`; in few dimensions nothing is better.
    """

    def loss(self, score: Score, x: Float[Array, "n dim"], key: Key[Array, ""]) -> Float[Array, ""]:
        """Return the loss of `score` on the draws `x`; no randomness is needed."""
        del key
        value, divergence = jax.vmap(lambda point: value_and_divergence(score, point))(x)
        return jnp.mean(jnp.sum(value**2, axis=-1) + 2.0 * divergence)
