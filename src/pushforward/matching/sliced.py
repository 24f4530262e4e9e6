"""Sliced score matching (Song et al. 2019): the divergence by Hutchinson's random projections."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Score
from pushforward.checks import check_count
from pushforward.divergence import value_and_quadratic_form
from pushforward.matching.base import Matching


class Sliced(Matching):
    """`E[ |s(x)|^2 + 2 v . J_s(x) v ]` with random signs `v`: exact matching in expectation, at any `dim`.

    The variance-reduced form: the square is taken whole, only the divergence is projected.
    """

    num_projections: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        check_count(self.num_projections, "num_projections")

    def loss(self, score: Score, x: Float[Array, "n dim"], key: Key[Array, ""]) -> Float[Array, ""]:
        """Return the loss of `score` on the draws `x`, with fresh projections for every draw."""
        signs = jax.random.rademacher(key, (self.num_projections, *x.shape), dtype=x.dtype)

        def one(point, direction):
            value, form = value_and_quadratic_form(score, point, direction)
            return value @ value + 2.0 * form

        return jnp.mean(jax.vmap(jax.vmap(one), in_axes=(None, 0))(x, signs))
