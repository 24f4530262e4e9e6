"""The activations of `pushforward.networks`, in place, so that a tile stays in the cache."""

import math
from collections.abc import Callable

import numpy as np

from pushforward.checks import check_choice

Activation = Callable[[np.ndarray, np.ndarray], None]
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


def _relu(h: np.ndarray, spare: np.ndarray) -> None:
    np.maximum(h, 0.0, out=h)


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


def _tanh(h: np.ndarray, spare: np.ndarray) -> None:
    np.tanh(h, out=h)


ACTIVATIONS: dict[str, Activation] = {
    "elu": _elu,
    "gelu": _gelu,
    "leaky_relu": _leaky_relu,
    "relu": _relu,
    "silu": _silu,
    "squareplus": _squareplus,
    "tanh": _tanh,
}


def activation(name: str) -> Activation:
    """Look an activation up by name."""
    return ACTIVATIONS[check_choice(name, "activation", ACTIVATIONS)]
