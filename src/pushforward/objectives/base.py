"""What an objective is: a surrogate whose gradient in the network's parameters moves the sampler."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import Latent

Network: TypeAlias = Callable[[Float[Array, " latent"]], Float[Array, " dim"]]


@runtime_checkable
class Invertible(Protocol):
    """A map that knows its inverse and its determinant."""

    def __call__(self, z: Array, /) -> Array:
        """Map one latent."""
        ...

    def value_and_log_det(self, z: Array, /) -> tuple[Array, Array]:
        """Map one latent, and return `log |det|` of the map there."""
        ...

    def inverse_and_log_det(self, x: Array, /) -> tuple[Array, Array]:
        """Return the latent of one point, and `log |det|` of the map there."""
        ...


class View(NamedTuple):
    """What an objective may look at besides the network: target, fitted score, how far training is."""

    target: Target
    score: Any
    """The fitted score (or critic) of the sampler's draws, frozen; `None` for objectives that need none."""
    progress: Float[Array, ""]
    """From 0 at the start of training to 1 at its end."""
    latent: Latent | None = None
    """The law of the latents; only `ExactKL` asks for it."""


class Objective(eqx.Module):
    """A surrogate: its value may mean nothing, its gradient through the draws is what counts."""

    @abc.abstractmethod
    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return a scalar whose gradient in the parameters of `network` is the step direction."""


def push(network: Network, z: Float[Array, "n latent"]) -> Float[Array, "n dim"]:
    """Push latents through the network."""
    return jax.vmap(network)(z)
