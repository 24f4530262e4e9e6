"""The critic of the Fisher-Stein divergence: fitted like a score, to another end."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Score, Target
from pushforward.checks import check_positive
from pushforward.divergence import value_and_divergence
from pushforward.matching.base import Matching


class Critic(Matching):
    """`- E[ s_q . f + div f - lambda |f|^2 ]`, least at `f* = (s_q - s_p) / (2 lambda)` (Proposition 1)."""

    target: Target
    weight: float = eqx.field(static=True, default=0.5)

    def __check_init__(self):
        check_positive(self.weight, "weight")

    def at(self, target: Target) -> "Critic":
        """Return the critic of another target: it must see the one that the objective sees."""
        return Critic(target, self.weight)

    def loss(self, score: Score, x: Float[Array, "n dim"], key: Key[Array, ""]) -> Float[Array, ""]:
        """Return the negative Fisher-Stein value of the critic `score` on the draws `x`."""
        del key

        def one(point):
            value, divergence = value_and_divergence(score, point)
            return self.target.score(point) @ value + divergence - self.weight * value @ value

        return -jnp.mean(jax.vmap(one)(x))
