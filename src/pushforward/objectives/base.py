"""What an objective is: a surrogate whose gradient in the network's parameters moves the sampler."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import Latent
from pushforward.networks.invertible import Invertible as Invertible

Network: TypeAlias = Callable[[Float[Array, " latent"]], Float[Array, " dim"]]


class View(NamedTuple):
    """What an objective may look at besides the network: target, fitted score, how far training is."""

    target: Target
    score: Any
    """The fitted score (or critic) of the sampler's draws, frozen; `None` for objectives that need none."""
    progress: Float[Array, ""]
    """From 0 at the start of training to 1 at its end."""
    latent: Latent | None = None
    """The law of the latents; only `ExactKL` asks for it."""


class Wants(NamedTuple):
    """What an objective asks of the training around it."""

    fitted: Literal["score", "critic", "nothing"] = "score"
    """What must be fitted to the draws before each step."""
    smooth: bool = False
    """Whether the fitted score is differentiated, and must be smooth."""
    one_derivative: bool = False
    """Whether the log density is differentiated once only, which saves work where it solves equations."""


class Objective(eqx.Module):
    """A surrogate: its value may mean nothing, its gradient through the draws is what counts.

    A subclass in a user's own file is used as it is: `fit(key, target, method=methods.KL(objective=Mine()))`.
    """

    wants: ClassVar[Wants] = Wants()

    @abc.abstractmethod
    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return a scalar whose gradient in the parameters of `network` is the step direction."""


def push(network: Network, z: Float[Array, "n latent"]) -> Float[Array, "n dim"]:
    """Push latents through the network."""
    return jax.vmap(network)(z)
