"""What an objective is: a surrogate whose gradient in the network's parameters moves the sampler."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import Latent

Network: TypeAlias = Callable[[Float[Array, " latent"]], Float[Array, " dim"]]
OneKey: TypeAlias = Key[Array, ""]
Latents: TypeAlias = Float[Array, "n latent"]
Scalar: TypeAlias = Float[Array, ""]


class View(NamedTuple):
    """What an objective may look at besides the network: target, fitted score, how far training is."""

    target: Target
    score: Any  # the fitted score (or critic) of the sampler's draws, frozen; `None` if none is needed
    progress: Scalar  # from 0 at the start of training to 1 at its end
    latent: Latent | None = None  # the law of the latents, for those that compute the sampler's density


class Wants(NamedTuple):
    """What an objective asks of the training around it."""

    fitted: Literal["score", "critic", "nothing"] = "score"  # to the draws, before each step
    smooth: bool = False  # whether the fitted score is differentiated, and must be smooth
    one_derivative: bool = False  # whether it differentiates the log density once, which can save work
    rows: bool = False  # whether it is a mean over rows, each alone, without randomness: devices share them


class Objective(eqx.Module):
    """A surrogate: its value may mean nothing, its gradient through the draws is what counts.

    A subclass in a user's own file is used as it is: `fit(key, target, method=methods.KL(objective=Mine()))`.
    """

    wants: ClassVar[Wants] = Wants()

    @abc.abstractmethod
    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return a scalar whose gradient in the parameters of `network` is the step direction."""


def push(network: Network, z: Latents) -> Float[Array, "n dim"]:
    """Push latents through the network."""
    return jax.vmap(network)(z)


class Combined(Objective):
    """`sum_i w_i(progress) L_i`; a weight is a number or a function of progress in `[0, 1]`."""

    objectives: tuple[Objective, ...]
    weights: tuple[float | Callable[[Scalar], Any], ...] = eqx.field(static=True)

    def __check_init__(self):
        if len(self.objectives) != len(self.weights) or not self.objectives:
            raise ValueError(
                f"`weights` must have one entry for each of the objectives; got {len(self.weights)} "
                f"for {len(self.objectives)}."
            )

    @property
    def wants(self) -> Wants:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What any of its parts wants."""
        each = [part.wants for part in self.objectives]
        kinds = [w.fitted for w in each]
        fitted = "score" if "score" in kinds else "critic" if "critic" in kinds else "nothing"
        one, rows = (all(which) for which in zip(*((w.one_derivative, w.rows) for w in each), strict=True))
        return Wants(fitted, any(w.smooth for w in each), one, rows)

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the weighted sum, each part with randomness of its own."""
        total = 0.0 * view.progress
        keys = jax.random.split(key, len(self.objectives))
        for part, weight, key_part in zip(self.objectives, self.weights, keys, strict=True):
            w = weight(view.progress) if callable(weight) else weight
            total += w * part.surrogate(key_part, network, z, view)
        return total
