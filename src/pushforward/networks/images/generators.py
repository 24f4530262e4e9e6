"""One-shot samplers of images: from a latent vector to pixels in [0, 1], up-sampling four times."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from pushforward.networks.images.layers import AXES, Conv, Dense, Norm, conv, dense, norm, unfold

SLOPE = 0.2


class Generator(eqx.Module):
    """`z -> image`: three dense layers to the lowest map, then three convolutions, each unfolded by two.

    Normalisation and LeakyReLU(0.2) after every layer but the last, which ends in a sigmoid. Sub-pixel
    convolutions in place of transposed ones, whose kernel gradients are slow on a CPU. The first layer sees
    the signs of some latents beside all of them: images of different kinds need no bridge between them, which
    a continuous map would have to have.
    """

    stem: Dense
    middle: Dense
    lift: Dense
    ups: tuple[Conv, ...]
    norms: tuple[Norm, ...]
    rows: int = eqx.field(static=True)
    """Of the lowest map."""
    columns: int = eqx.field(static=True)
    signs: int = eqx.field(static=True)
    """Latents whose signs are seen."""

    @property
    def latent(self) -> int:
        """Coordinates of the latent."""
        return self.stem.weight.shape[0] - self.signs

    def __call__(self, z: Float[Array, " latent"]) -> Float[Array, "height width channels"]:
        """Return one image."""
        h = self._after(0, self.stem(jnp.concatenate([z, jnp.sign(z[: self.signs])])))
        h = self._after(1, self.middle(h))
        h = self._after(2, self.lift(h).reshape(self.rows, self.columns, -1))
        for level, up in enumerate(self.ups):
            h = unfold(up(h))
            if level + 1 < len(self.ups):
                h = self._after(level + 3, h)
        return jax.nn.sigmoid(h)

    def _after(self, level: int, h: Float[Array, "*where channels"]) -> Float[Array, "*where channels"]:
        return jax.nn.leaky_relu(self.norms[level](h), SLOPE)


def generator(
    key: Key[Array, ""],
    shape: tuple[int, int] = (32, 32),
    *,
    latent: int = 128,
    stem: int = 256,
    widths: tuple[int, int, int] = (128, 56, 28),
    channels: int = 1,
    signs: int = 8,
    start: float = 0.13,
) -> Generator:
    """Build a generator; image sides must be multiples of 8.

    **Arguments:**

    - `shape`: height and width of an image.
    - `latent`: coordinates of the latent; `stem`: units of the first two layers.
    - `widths`: channels at 1/8, 1/4 and 1/2 of the resolution.
    - `signs`: latents whose signs are seen too, all of them at most.
    - `start`: the pixel value that an untrained generator is near.
    """
    if shape[0] % 8 or shape[1] % 8:
        raise ValueError(f"`shape` must be of multiples of 8; got {shape}. Pad the images.")
    rows, columns = shape[0] // 8, shape[1] // 8
    keys, signs = jax.random.split(key, 6), min(signs, latent)
    outs = (*widths[1:], channels)
    ups = [conv(k, w, 4 * n) for k, w, n in zip(keys[3:], widths, outs, strict=True)]
    ups[-1] = Conv(ups[-1].kernel, jnp.full(4 * channels, math.log(start / (1.0 - start)), jnp.float32))
    return Generator(
        dense(keys[0], latent + signs, stem), dense(keys[1], stem, stem),
        dense(keys[2], stem, rows * columns * widths[0]), tuple(ups),
        tuple(norm(c) for c in (stem, stem, *widths)), rows, columns, signs,
    )  # fmt: skip


class PaperGenerator(eqx.Module):
    """The paper's generator: four 4 x 4 transposed convolutions, batch normalisation after the first three.

    Batch normalisation is of a batch, hence `images`; the statistics are those of the batch at hand.
    """

    kernels: tuple[Float[Array, "4 4 _in _out"], ...]
    biases: tuple[Float[Array, " _out"], ...]
    norms: tuple[Norm, ...]

    @property
    def latent(self) -> int:
        """Coordinates of the latent."""
        return self.kernels[0].shape[2]

    def images(self, z: Float[Array, "n latent"]) -> Float[Array, "n height width channels"]:
        """Return a batch of images."""
        h = z[:, None, None, :]
        for level, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            stride, padding = (1, "VALID") if level == 0 else (2, "SAME")
            h = lax.conv_transpose(h, kernel, (stride, stride), padding, dimension_numbers=AXES) + bias
            if level < len(self.norms):
                mean, spread = h.mean(axis=(0, 1, 2)), h.std(axis=(0, 1, 2))
                affine = self.norms[level]
                h = jax.nn.leaky_relu((h - mean) / (spread + 1e-5) * affine.scale + affine.shift, SLOPE)
        return jax.nn.sigmoid(h)


def paper_generator(
    key: Key[Array, ""],
    *,
    latent: int = 128,
    widths: tuple[int, ...] = (1024, 512, 256),
    channels: int = 1,
) -> PaperGenerator:
    """Build the paper's generator: 12,592,385 parameters, for 32 x 32 grey pixels."""
    sizes = (latent, *widths, channels)
    keys = jax.random.split(key, len(sizes) - 1)
    kernels = tuple(
        jax.random.normal(k, (4, 4, n_in, n_out)) / jnp.sqrt(n_in * (1.0 if i == 0 else 4.0))
        for i, (k, n_in, n_out) in enumerate(zip(keys, sizes[:-1], sizes[1:], strict=True))
    )
    return PaperGenerator(kernels, tuple(jnp.zeros(n) for n in sizes[1:]), tuple(norm(n) for n in widths))


def images_of(generator: Any, z: Float[Array, "n latent"]) -> Float[Array, "n _h _w _c"]:
    """Return a batch of images; a generator with batch normalisation has its own way."""
    return generator.images(z) if hasattr(generator, "images") else jax.vmap(generator)(z)
