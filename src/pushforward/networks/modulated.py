"""The residual map of the default recipe: each coordinate stretched and shifted by a small net."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.networks.mlp import MLP, mlp
from pushforward.structure import MOST


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
        """Coordinates of the latent."""
        return self.net.in_size

    @property
    def out_size(self) -> int:
        """Coordinates of the draw."""
        return self.net.in_size

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Map one latent."""
        stretch, shift = jnp.split(self.net(z), 2)
        return z * jnp.exp(MOST * jnp.tanh(stretch / MOST)) + shift


def modulated(
    key: Key[Array, ""],
    dim: int,
    *,
    width: int = 64,
    depth: int = 3,
    activation: str = "squareplus",
) -> Modulated:
    """Build a `Modulated` map of `dim` coordinates that starts as the identity."""
    net = mlp(key, dim, 2 * dim, width=width, depth=depth, activation=activation, zero_last=True)
    return Modulated(net)
