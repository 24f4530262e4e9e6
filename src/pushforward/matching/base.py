"""What a matching is: a loss whose minimiser is the score of the sampler's draws, or an estimate of it."""

import abc
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float, Key

from pushforward.base import Score, Target


class Matching(eqx.Module):
    """How a net is fitted to the score of draws.

    A subclass in a user's own file is used as it is: `fit(key, target, method=methods.KL(matching=Mine()))`.
    """

    rows: ClassVar[bool] = False
    """Whether the loss is a mean over draws, each taken alone and without randomness: devices share it."""

    @abc.abstractmethod
    def loss(self, score: Score, x: Float[Array, "n dim"], key: Key[Array, ""]) -> Float[Array, ""]:
        """Return the loss of `score` on the draws `x`."""

    def at(self, target: Target) -> "Matching":
        """Return the matching for the target of a step, which tempering changes; most ask for none."""
        return self


class Direct(eqx.Module):
    """A score estimate that needs no net and no steps of its own."""

    @abc.abstractmethod
    def fit(self, x: Float[Array, "n dim"]) -> Any:
        """Return the estimated score of the law of the draws `x`, callable at any point."""
