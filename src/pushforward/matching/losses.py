"""Losses that fit a net to the score of draws: exact, sliced and denoising score matching, and a critic."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Score, Target
from pushforward.checks import check_count, check_positive
from pushforward.divergence import stein_value, value_and_divergence, value_and_quadratic_form
from pushforward.matching.base import Matching


class Exact(Matching):
    """`E[ |s(x)|^2 + 2 div s(x) ]` (Hyvarinen 2005), whose minimiser is the score of the draws' own law.

    The cost, one tangent a coordinate, grows with `dim`; in few dimensions nothing is better.
    """

    rows: ClassVar[bool] = True

    def loss(self, score: Score, x: Float[Array, "n dim"], key: Key[Array, ""]) -> Float[Array, ""]:
        """Return the loss of `score` on the draws `x`; no randomness is needed."""
        value, divergence = jax.vmap(lambda point: value_and_divergence(score, point))(x)
        return jnp.mean(jnp.sum(value**2, axis=-1) + 2.0 * divergence)


class Sliced(Matching):
    """`E[ |s(x)|^2 + 2 v . J_s(x) v ]` with random signs `v`: exact matching in expectation, at any `dim`.

    The variance-reduced form of Song et al. (2019): the square is taken whole, only the divergence is
    projected, as Hutchinson's.
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


class Denoising(Matching):
    """`E[ |s(x + sigma e) + e / sigma|^2 ]`: its minimiser is the score of the draws **smoothed** by `sigma`.

    Vincent (2011), without derivatives of the net. Cheap and noisy: the variance of the target `-e / sigma`
    grows as `1 / sigma^2`.
    """

    sigma: float = eqx.field(static=True, default=0.05, converter=lambda v: check_positive(v, "sigma"))

    def loss(self, score: Score, x: Float[Array, "n dim"], key: Key[Array, ""]) -> Float[Array, ""]:
        """Return the loss of `score` on the draws `x`."""
        noise = jax.random.normal(key, x.shape, dtype=x.dtype)
        error = jax.vmap(score)(x + self.sigma * noise) + noise / self.sigma
        return jnp.mean(jnp.sum(error**2, axis=-1))


class Critic(Matching):
    """`- E[ s_q . f + div f - lambda |f|^2 ]`, least at `f* = (s_q - s_p) / (2 lambda)` (Proposition 1)."""

    rows: ClassVar[bool] = True
    target: Target
    weight: float = eqx.field(static=True, default=0.5, converter=lambda v: check_positive(v, "weight"))

    def at(self, target: Target) -> "Critic":
        """Return the critic of another target: it must see the one that the objective sees."""
        return Critic(target, self.weight)

    def loss(self, score: Score, x: Float[Array, "n dim"], key: Key[Array, ""]) -> Float[Array, ""]:
        """Return the negative Fisher-Stein value of the critic `score` on the draws `x`."""
        q, weight = self.target.score, self.weight
        return -jnp.mean(jax.vmap(lambda point: stein_value(q, score, point, weight))(x))
