"""Fully connected networks.

Activations go by name: a name can be stored in a file and suggested in an error; a function cannot.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Key

from pushforward.checks import check_choice, check_count


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


class MLP(eqx.Module):
    """`x -> W_n a(... a(W_1 x + b_1) ...) + b_n`, plus `x` itself where `skip` is set.

    Built with `mlp`; the fields are all there is to save.
    """

    # Each layer has sizes of its own, which the leading underscore says to the shape checks.
    weights: tuple[Float[Array, "_out _in"], ...]
    biases: tuple[Float[Array, " _out"], ...]
    activation: str = eqx.field(static=True)
    skip: bool = eqx.field(static=True)

    def __check_init__(self):
        outs = [w.shape[0] for w in self.weights]
        ins = [self.weights[0].shape[1], *outs[:-1]]
        chained = [w.shape for w in self.weights] == [*zip(outs, ins, strict=True)]
        if not chained or [b.shape for b in self.biases] != [(size,) for size in outs]:
            raise ValueError("the layers of an MLP must chain: each `in` size is the `out` size before it.")
        check_choice(self.activation, "activation", ACTIVATIONS)

    @property
    def in_size(self) -> int:
        """Coordinates of the input."""
        return self.weights[0].shape[1]

    @property
    def out_size(self) -> int:
        """Coordinates of the output."""
        return self.weights[-1].shape[0]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """Map one point."""
        act, h = ACTIVATIONS[self.activation], x
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = act(weight @ h + bias)
        y = self.weights[-1] @ h + self.biases[-1]
        if not self.skip:
            return y
        # A latent longer than the point loses its tail on the skip, a shorter one is padded.
        shared = min(self.in_size, self.out_size)
        return y.at[:shared].add(x[:shared])


def mlp(
    key: Key[Array, ""],
    in_size: int,
    out_size: int,
    *,
    width: int = 64,
    depth: int = 3,
    activation: str = "silu",
    skip: bool = False,
    zero_last: bool = False,
) -> MLP:
    """Build an MLP of `depth` hidden layers (so `depth + 1` linear maps), biases zero, weights `N(0, 1/in)`.

    `zero_last` starts the last layer at zero, so that a net with a skip starts as the identity.
    """
    width, depth = check_count(width, "width"), check_count(depth, "depth")
    sizes = [check_count(in_size, "in_size"), *[width] * depth, check_count(out_size, "out_size")]
    shapes = [(n_out, n_in) for n_in, n_out in pairwise(sizes)]
    ends = np.cumsum([n_out * n_in for n_out, n_in in shapes])
    drawn = _normals(key, int(ends[-1]))
    # Cut on the host, where nothing need be compiled for sizes that are asked for once.
    parts = (
        jnp.split(drawn, ends[:-1]) if isinstance(drawn, Tracer) else np.split(np.asarray(drawn), ends[:-1])
    )
    weights = [part.reshape(shape) / shape[1] ** 0.5 for part, shape in zip(parts, shapes, strict=True)]
    if zero_last:
        weights[-1] = 0.0 * weights[-1]
    biases = [np.zeros(size, drawn.dtype) for size in sizes[1:]]
    return MLP(tuple(map(jnp.asarray, weights)), tuple(map(jnp.asarray, biases)), activation, skip)


@partial(jax.jit, static_argnames="count")
def _normals(key: Key[Array, ""], count: int) -> Float[Array, " n"]:
    return jax.random.normal(key, (count,))
