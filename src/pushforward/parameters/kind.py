"""What a constraint is: a bijection from free coordinates to values, with its log-determinant.

The maps are NumPyro's, in closed form. Each is written once for NumPy and JAX alike and for any number of
leading axes: draws are constrained by NumPy without compiling anything, log densities by JAX. Logarithms of
stick lengths are added rather than lengths multiplied, so that values far out keep their digits where
products would round to 0 or 1.
"""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

Values = Any
"""An array of NumPy or of JAX, traced or not."""

Shape = tuple[int, ...]


def namespace(x: Values) -> Any:
    """Return the module that computes with `x`: NumPy, or JAX's."""
    if isinstance(x, np.ndarray | np.generic):
        return np
    import jax.numpy as jnp

    return jnp


def softplus(x: Values) -> Values:
    """Return `log(1 + exp(x))` without overflow."""
    xp = namespace(x)
    return xp.logaddexp(x, xp.zeros_like(x))


def sigmoid(x: Values) -> Values:
    """Return `1 / (1 + exp(-x))`, kept inside the open unit interval as NumPyro keeps it."""
    xp, limits = namespace(x), np.finfo(x.dtype)
    return xp.clip(xp.exp(-softplus(-x)), limits.tiny, 1.0 - limits.eps)


class Kind(abc.ABC):
    """One constraint: how many axes it takes hold of, which shapes it allows, and its map.

    `low` and `high` are constants of the constraint that broadcast against the values, where it has them.
    """

    event_ndim: int = 0
    constants: int = 0
    """How many constants it needs: none, `low` or `high` (1), or both (2)."""

    def free_shape(self, shape: Shape) -> Shape:
        """Return the shape of the free coordinates of values of `shape`, or raise a `ValueError`."""
        return shape

    @abc.abstractmethod
    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Map free coordinates to values."""

    @abc.abstractmethod
    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Map values back."""

    @abc.abstractmethod
    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return `log |det dy/du|`, one number for each event (for each number, where events are scalars)."""


def expected(shape: Sequence[int], wanted: str) -> ValueError:
    """Return the complaint about a shape."""
    return ValueError(f"needs {wanted}; got shape {tuple(shape)}")


def last_axis(shape: Shape) -> Shape:
    """Return `shape` if it has a last axis of at least one number."""
    if len(shape) < 1 or shape[-1] < 1:
        raise expected(shape, "a vector, so at least one axis")
    return shape


def square(shape: Shape) -> int:
    """Return the size of the square matrices that the last two axes hold."""
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 1:
        raise expected(shape, "square matrices in its last two axes")
    return shape[-1]
