"""A weighted sum of objectives, which is itself an objective."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from pushforward.objectives.base import Network, Objective, View, Wants

Weight = float | Callable[[Float[Array, ""]], Any]


class Combined(Objective):
    """`sum_i w_i(progress) L_i`; a weight is a number or a function of progress in `[0, 1]`."""

    objectives: tuple[Objective, ...]
    weights: tuple[Weight, ...] = eqx.field(static=True)

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
        return Wants(fitted, any(w.smooth for w in each), all(w.one_derivative for w in each))

    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return the weighted sum, each part with randomness of its own."""
        total = 0.0 * view.progress
        keys = jax.random.split(key, len(self.objectives))
        for part, weight, key_part in zip(self.objectives, self.weights, keys, strict=True):
            w = weight(view.progress) if callable(weight) else weight
            total += w * part.surrogate(key_part, network, z, view)
        return total
