"""The activations of `pushforward.networks`, in place, so that a tile stays in the cache."""

import math
from collections.abc import Callable

import numpy as np

Activation = Callable[[np.ndarray, np.ndarray], object]
"""`act(h, spare)`: replace `h` by `a(h)`; `spare` has its shape and may be overwritten."""


def _elu(h: np.ndarray, spare: np.ndarray) -> None:
    np.minimum(h, 0.0, out=spare)
    np.expm1(spare, out=spare)
    np.maximum(h, 0.0, out=h)
    h += spare


def _gelu(h: np.ndarray, spare: np.ndarray) -> None:
    # The tanh form, as `jax.nn.gelu` has it: h/2 (1 + tanh(sqrt(2/pi) (h + 0.044715 h^3))).
    np.multiply(h, h, out=spare)
    spare *= 0.044715
    spare += 1.0
    spare *= h
    spare *= math.sqrt(2.0 / math.pi)
    np.tanh(spare, out=spare)
    spare += 1.0
    h *= 0.5
    h *= spare


def _leaky_relu(h: np.ndarray, spare: np.ndarray) -> None:
    np.multiply(h, 0.2, out=spare)
    np.maximum(h, spare, out=h)


def _silu(h: np.ndarray, spare: np.ndarray) -> None:
    np.negative(h, out=spare)
    np.exp(spare, out=spare)
    spare += 1.0
    h /= spare


def _squareplus(h: np.ndarray, spare: np.ndarray) -> None:
    np.multiply(h, h, out=spare)
    spare += 1.0
    np.sqrt(spare, out=spare)
    h += spare
    h -= 1.0
    h *= 0.5


ACTIVATIONS: dict[str, Activation] = {
    "elu": _elu,
    "gelu": _gelu,
    "leaky_relu": _leaky_relu,
    "relu": lambda h, spare: np.maximum(h, 0.0, out=h),
    "silu": _silu,
    "squareplus": _squareplus,
    "tanh": lambda h, spare: np.tanh(h, out=h),
}
