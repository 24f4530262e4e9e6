"""The maps of the default recipe, the identity at the start: `Modulated`, which may fold in more than a few
dimensions, and `Coupled`, which cannot, whatever its weights are.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count
from pushforward.networks.mlp import MLP, mlp
from pushforward.structure import LEAST, MOST


class Modulated(eqx.Module):
    """`u = z exp(3 tanh(s(z) / 3)) + a(z)`, with `[s, a]` one MLP whose last layer starts at zero.

    It starts as the identity, so that training starts exactly at the law of the latents.
    """

    net: MLP

    def __check_init__(self):
        if self.net.out_size != 2 * self.net.in_size:
            raise ValueError("the net of a Modulated map must have twice as many outputs as inputs.")

    @property
    def in_size(self) -> int:
        """Coordinates of the latent, and of the draw."""
        return self.net.in_size

    out_size = in_size

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Map one latent."""
        stretch, shift = jnp.split(self.net(z), 2)
        return z * jnp.exp(MOST * jnp.tanh(stretch / MOST)) + shift


def modulated(
    key: Key[Array, ""], dim: int, *, width: int = 64, depth: int = 3, activation: str = "squareplus"
) -> Modulated:
    """Build a `Modulated` map of `dim` coordinates that starts as the identity."""
    return Modulated(mlp(key, dim, 2 * dim, width=width, depth=depth, activation=activation, zero_last=True))


def kept(layer: int, dim: int) -> Float[np.ndarray, " dim"]:
    """Return 1 for the coordinates that a layer keeps, and 0 for those that it moves.

    Layers `2b` and `2b + 1` part the coordinates by bit `b` of their numbers, so that any two coordinates
    are on different sides in some layer, either way round.
    """
    bit, side = divmod(layer, 2)
    return ((np.arange(dim) >> bit) % 2 == side).astype(np.float32)


def num_layers(dim: int) -> int:
    """Return how many layers let every coordinate move every other."""
    return 2 * max(1, math.ceil(math.log2(dim)))


class Coupled(eqx.Module):
    """Layers `u_m <- u_m exp(b(s)) + a`: some coordinates moved, as the others (kept) say.

    `b(s)` is near `s` and bounded: `3 tanh(s / 3)` above zero, `8 tanh(s / 8)` below. `[s, a]` is an MLP of
    the kept coordinates, its last layer zero at the start: the map begins as the identity. Its inverse and
    its determinant cost as much as the map itself, in any dimension.
    """

    nets: tuple[MLP, ...]

    def __check_init__(self):
        dim = self.nets[0].in_size if self.nets else 0
        if dim < 1 or any((net.in_size, net.out_size) != (dim, 2 * dim) for net in self.nets):
            raise ValueError("the nets of a Coupled map must each have twice as many outputs as inputs.")

    @property
    def in_size(self) -> int:
        """Coordinates of the latent, and of the draw."""
        return self.nets[0].in_size

    out_size = in_size

    def _layer(
        self, index: int, u: Float[Array, " dim"]
    ) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
        """Return the log stretch and the shift of all coordinates: both zero for those that are kept."""
        mask = jnp.asarray(kept(index, self.in_size), u.dtype)
        stretch, shift = jnp.split(self.nets[index](u * mask), 2)
        return (1.0 - mask) * _bounded(stretch), (1.0 - mask) * shift

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Map one latent."""
        return self.value_and_log_det(z)[0]

    def value_and_log_det(self, z: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Float[Array, ""]]:
        """Map one latent, and return `log det` of the map there."""
        u, log_det = z, jnp.zeros((), z.dtype)
        for index in range(len(self.nets)):
            stretch, shift = self._layer(index, u)
            u, log_det = u * jnp.exp(stretch) + shift, log_det + jnp.sum(stretch)
        return u, log_det

    def inverse_and_log_det(self, u: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Float[Array, ""]]:
        """Return the latent of one point, and `log det` of the map there."""
        z, log_det = u, jnp.zeros((), u.dtype)
        for index in reversed(range(len(self.nets))):
            stretch, shift = self._layer(index, z)
            z, log_det = (z - shift) * jnp.exp(-stretch), log_det + jnp.sum(stretch)
        return z, log_det


def _bounded(s: Float[Array, " dim"]) -> Float[Array, " dim"]:
    return jnp.where(s > 0, MOST * jnp.tanh(s / MOST), LEAST * jnp.tanh(s / LEAST))


def unbounded(log_stretch: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Return the `s` for which a layer stretches by that log, as far as one can."""
    bound = np.where(log_stretch > 0, MOST, LEAST)
    return bound * np.arctanh(np.clip(log_stretch / bound, -0.96, 0.96))


def coupled(
    key: Key[Array, ""], dim: int, *, width: int = 64, depth: int = 2, activation: str = "silu"
) -> Coupled:
    """Build a `Coupled` map of `dim` coordinates that starts as the identity."""
    keys = jax.random.split(key, num_layers(dim))
    sizes = {"width": width, "depth": depth, "activation": activation}
    return Coupled(tuple(mlp(k, dim, 2 * dim, zero_last=True, **sizes) for k in keys))


class Identity(eqx.Module):
    """The map that changes nothing: for latents that are the target's law already."""

    size: int = eqx.field(static=True, converter=lambda size: check_count(size, "size"))

    in_size = out_size = property(lambda self: self.size)

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Map one latent."""
        return z

    def value_and_log_det(self, z: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Float[Array, ""]]:
        """Map one latent, and return `log det` of the map there, zero."""
        return z, jnp.zeros((), z.dtype)

    inverse_and_log_det = value_and_log_det
