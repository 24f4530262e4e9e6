"""The fields that targets have in common, written once."""

import equinox as eqx
from jaxtyping import Array, Float

from pushforward.base import ExactTarget, Target, Window


class Known(Target):
    """A target that has its number of coordinates and its name as fields."""

    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)


class KnownExact(ExactTarget):
    """An exact target whose moments, name and window are fields."""

    mean: Float[Array, " dim"] | None
    covariance: Float[Array, "dim dim"] | None
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    window: Window | None = eqx.field(static=True)
