"""Activations by name: a name can be stored in a file and suggested in an error; a function cannot."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.checks import check_choice


def _squareplus(h: Float[Array, "..."]) -> Float[Array, "..."]:
    """`(h + sqrt(h^2 + 1) - 1) / 2`: smooth as softplus, and cheapest where second derivatives are needed."""
    return 0.5 * (h + jnp.sqrt(h * h + 1.0) - 1.0)


ACTIVATIONS: dict[str, Callable[[Float[Array, "..."]], Float[Array, "..."]]] = {
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "leaky_relu": lambda h: jax.nn.leaky_relu(h, 0.2),
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "squareplus": _squareplus,
    "tanh": jnp.tanh,
}

PIECEWISE_LINEAR = frozenset({"relu", "leaky_relu"})
"""Their second derivative is zero almost everywhere, so that the divergence of a net has no gradient."""


def activation(name: str) -> Callable[[Float[Array, "..."]], Float[Array, "..."]]:
    """Look an activation up by name."""
    return ACTIVATIONS[check_choice(name, "activation", ACTIVATIONS)]
