"""One-shot samplers of images: from a latent vector to pixels in [0, 1], up-sampling four times."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key
from scipy.special import ndtri

from reproduce.images.layers import AXES, Conv, Dense, Norm, conv, dense, norm, unfold

SLOPE = 0.2


class Generator(eqx.Module):
    """`z -> image`: three dense layers to the lowest map, then three convolutions, each unfolded by two.

    Normalisation and LeakyReLU(0.2) after every layer but the last, which ends in a sigmoid. Sub-pixel
    convolutions in place of transposed ones, whose kernel gradients are slow on a CPU. The first latent says
    of which kind the image is, and no more: kinds need no bridges between them, which a continuous map would
    have to have, and have the shares that they are given.
    """

    stem: Dense
    kinds: Float[Array, "_kinds _stem"]  # what the first layer adds for each kind
    bounds: Float[Array, " _between"]  # where on the first latent one kind ends and the next begins
    middle: Dense
    lift: Dense
    ups: tuple[Conv, ...]
    norms: tuple[Norm, ...]
    rows: int = eqx.field(static=True)  # of the lowest map
    columns: int = eqx.field(static=True)

    @property
    def latent(self) -> int:
        """Coordinates of the latent."""
        return 1 + self.stem.weight.shape[0]

    def __call__(self, z: Float[Array, " latent"]) -> Float[Array, "height width channels"]:
        """Return one image."""
        return self.of_kind(self.kind(z), z[1:])

    def kind(self, z: Float[Array, " latent"]) -> Int[Array, ""]:
        """Return of which kind the image of a latent is."""
        return jnp.sum(z[0] > self.bounds)

    def of_kind(
        self, kind: Int[Array, ""], rest: Float[Array, " rest"]
    ) -> Float[Array, "height width channels"]:
        """Return one image of a kind, by all latents but the first."""
        h = self._after(0, self.stem(rest) + self.kinds[kind])
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
    kinds: int = 1,
    start: float = 0.13,
) -> Generator:
    """Build a generator; image sides must be multiples of 8."""
    if shape[0] % 8 or shape[1] % 8:
        raise ValueError(f"`shape` must be of multiples of 8; got {shape}. Pad the images.")
    rows, columns = shape[0] // 8, shape[1] // 8
    keys = jax.random.split(key, 7)
    outs = (*widths[1:], channels)
    ups = [conv(k, w, 4 * n) for k, w, n in zip(keys[3:6], widths, outs, strict=True)]
    ups[-1] = Conv(ups[-1].kernel, jnp.full(4 * channels, math.log(start / (1.0 - start)), jnp.float32))
    return Generator(
        dense(keys[0], latent - 1, stem), jax.random.normal(keys[6], (kinds, stem)), _bounds(np.ones(kinds)),
        dense(keys[1], stem, stem), dense(keys[2], stem, rows * columns * widths[0]), tuple(ups),
        tuple(norm(c) for c in (stem, stem, *widths)), rows, columns,
    )  # fmt: skip


def with_shares(generator: Generator, shares: Float[np.ndarray, " kinds"]) -> Generator:
    """Return a generator whose kinds have these shares among its images."""
    if len(shares) != len(generator.kinds):
        raise ValueError(f"`shares` must be of {len(generator.kinds)} kinds; got {len(shares)}.")
    return eqx.tree_at(lambda g: g.bounds, generator, _bounds(shares))


def _bounds(shares: Float[np.ndarray, " kinds"]) -> Float[Array, " between"]:
    below = np.cumsum(shares)[:-1] / np.sum(shares)
    # Beyond ten deviations there is no draw, and files hold finite numbers only.
    return jnp.asarray(np.clip(ndtri(np.clip(below, 0.0, 1.0)), -10.0, 10.0), jnp.float32)


class PaperGenerator(eqx.Module):
    """The paper's generator: four 4 x 4 transposed convolutions, batch normalisation after three."""

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
    key: Key[Array, ""], *, latent: int = 128, widths: tuple[int, ...] = (1024, 512, 256), channels: int = 1
) -> PaperGenerator:
    """Build the paper's generator: 12,592,385 parameters, for 32 x 32 grey pixels."""
    sizes = (latent, *widths, channels)
    keys = jax.random.split(key, len(sizes) - 1)
    kernels = tuple(
        jax.random.normal(k, (4, 4, n_in, n_out)) / jnp.sqrt(n_in * (1.0 if i == 0 else 4.0))
        for i, (k, n_in, n_out) in enumerate(zip(keys, sizes[:-1], sizes[1:], strict=True))
    )
    return PaperGenerator(kernels, tuple(jnp.zeros(n) for n in sizes[1:]), tuple(norm(n) for n in widths))


def kinds_of(generator: Any, z: Float[Array, "n latent"]) -> Int[Array, " n"]:
    """Return of which kind each image of a batch of latents is; one kind where a generator knows of none."""
    return jax.vmap(generator.kind)(z) if hasattr(generator, "kind") else jnp.zeros(len(z), jnp.int32)


def images_of(generator: Any, z: Float[Array, "n latent"]) -> Float[Array, "n _h _w _c"]:
    """Return a batch of images; a generator with batch normalisation has its own way."""
    return generator.images(z) if hasattr(generator, "images") else jax.vmap(generator)(z)
