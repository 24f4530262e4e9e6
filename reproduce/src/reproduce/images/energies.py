"""Energies of images: by distance to a denoised copy, and the paper's residual network."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from reproduce.images.layers import Conv, Dense, conv, dense, halve
from reproduce.images.unet import UNet, unet


class DistanceEnergy(eqx.Module):
    """`f(x) = sqrt(d) sqrt(|x - D(x)|^2 + 1)` with a U-Net `D`.

    `E_sigma = f / sigma` asks for `|grad f|` near `sqrt(d)` wherever an image carries noise: a cone over the
    data. This form has that slope built in, and the net only has to say where the data are.
    """

    denoiser: UNet

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, ""]:
        """Return the energy of one image."""
        return jnp.sqrt(float(x.size)) * jnp.sqrt(jnp.sum((x - self.denoiser(x)) ** 2) + 1.0)


class ResidualBlock(eqx.Module):
    """`shortcut(h) + conv(elu(conv(elu(h))))`, both halved where it goes `down`."""

    first: Conv
    second: Conv
    shortcut: Conv
    down: bool = eqx.field(static=True)

    def __call__(self, h: Float[Array, "height width _in"]) -> Float[Array, "_low _wide _out"]:
        """Map one image."""
        out = self.second(jax.nn.elu(self.first(jax.nn.elu(h))))
        if not self.down:
            return self.shortcut(h) + out
        return self.shortcut(halve(h)) + halve(out)


class ResidualEnergy(eqx.Module):
    """The paper's energy: six residual blocks, then `(a.h + b)(c.h + d) + e.(h * h) + k`."""

    stem: Conv
    blocks: tuple[ResidualBlock, ...]
    left: Dense
    right: Dense
    square: Dense

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, ""]:
        """Return the energy of one image."""
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        flat = h.reshape(-1)
        return (self.left(flat) * self.right(flat) + self.square(flat * flat))[0]


def distance_energy(
    key: Key[Array, ""], widths: tuple[int, ...] = (16, 48, 96), *, shape: tuple[int, int], middle: int = 128
) -> DistanceEnergy:
    """Build a distance energy; sides must be multiples of `2 ** len(widths)`."""
    return DistanceEnergy(unet(key, widths, shape=shape, middle=middle))


def residual_energy(
    key: Key[Array, ""], *, base: int = 64, side: int = 32, channels: int = 1
) -> ResidualEnergy:
    """Build the paper's energy: 9,060,483 parameters with its 64 channels on 32 x 32 grey pixels."""
    plan = [(1, 2, True), (2, 2, False), (2, 4, True), (4, 4, False), (4, 8, True), (8, 8, False)]
    keys = iter(jax.random.split(key, 3 * len(plan) + 4))
    blocks = tuple(
        ResidualBlock(
            conv(next(keys), base * n_in, base * n_in, bias=False),
            conv(next(keys), base * n_in, base * n_out),
            conv(next(keys), base * n_in, base * n_out, side=1),
            down,
        )
        for n_in, n_out, down in plan
    )
    size = (side // 8) ** 2 * 8 * base
    return ResidualEnergy(
        conv(next(keys), channels, base),
        blocks,
        dense(next(keys), size, 1),
        dense(next(keys), size, 1),
        dense(next(keys), size, 1),
    )
