"""What a constraint is: a bijection from free coordinates to values, with its log-determinant.

The maps are NumPyro's, in closed form. Each is written once for NumPy and JAX alike and for any number of
leading axes: draws are constrained by NumPy without compiling anything, log densities by JAX. Logarithms of
stick lengths are added rather than lengths multiplied, so that values far out keep their digits where
products would round to 0 or 1.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Values = Module = Any  # an array of NumPy or of JAX, traced or not; and the module that computes with it

Shape = tuple[int, ...]


def _same(shape: Shape) -> Shape:
    return shape


class Kind(NamedTuple):
    """One constraint: its map, the map back, and what its log-determinant is.

    Each function takes the module that computes, an array, and the constants of the constraint, which
    broadcast against the values.
    """

    constrain: Callable[..., Values]  # from free coordinates `u` to values
    unconstrain: Callable[..., Values]  # from values `y` to free coordinates

    log_det: Callable[..., Values]
    """`log |det dy/du|` of `u`, one number for each event (for each number, where events are scalars)."""

    free_shape: Callable[[Shape], Shape] = _same
    """From the shape of values to that of the free coordinates; a `ValueError` where there is none."""

    constants: tuple[str, ...] = ()  # which constants it needs: none, `low`, `high`, or both


def softplus(xp: Module, x: Values) -> Values:
    """Return `log(1 + exp(x))` without overflow."""
    return xp.logaddexp(x, xp.zeros_like(x))


def sigmoid(xp: Module, x: Values) -> Values:
    """Return `1 / (1 + exp(-x))`, kept inside the open unit interval as NumPyro keeps it."""
    limits = np.finfo(x.dtype)
    return xp.clip(xp.exp(-softplus(xp, -x)), limits.tiny, 1.0 - limits.eps)


def log_sech2(xp: Module, u: Values) -> Values:
    """Return `log(1 - tanh(u)^2)` without loss where `tanh` is all but one."""
    return 2.0 * (math.log(2.0) - u - softplus(xp, -2.0 * u))


def arctanh(xp: Module, y: Values) -> Values:
    """Return the inverse of `tanh`, finite at one and beyond."""
    eps = np.finfo(y.dtype).eps
    return xp.arctanh(xp.clip(y, eps - 1.0, 1.0 - eps))


def expected(shape: Sequence[int], wanted: str) -> ValueError:
    """Return the complaint about a shape."""
    return ValueError(f"needs {wanted}; got shape {tuple(shape)}")
