"""Classifiers of images, whose last layer but one is what FID and KID look at."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from reproduce.images.layers import Conv, Dense, Norm, conv, dense, fold, norm


class SmallClassifier(eqx.Module):
    """Fold by two, a residual convolution on each of three levels, a dense layer of features, classes."""

    stem: Conv
    blocks: tuple[Conv, ...]
    downs: tuple[Dense, ...]
    features_map: Dense
    classes_map: Dense

    def features(self, x: Float[Array, "height width channels"]) -> Float[Array, " features"]:
        """Return the features of one image."""
        h = self.stem(fold(x))
        for level, block in enumerate(self.blocks):
            h = h + block(jax.nn.silu(h))
            if level < len(self.downs):
                h = self.downs[level](fold(h))
        return jax.nn.silu(self.features_map(jax.nn.silu(h).reshape(-1)))

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, " classes"]:
        """Return the classes' logits."""
        return self.classes_map(self.features(x))


def small_classifier(
    key: Key[Array, ""],
    shape: tuple[int, int] = (32, 32),
    *,
    classes: int = 10,
    widths: tuple[int, ...] = (32, 64, 128),
    features: int = 128,
) -> SmallClassifier:
    """Build a small classifier; image sides must be multiples of `2 ** len(widths)`."""
    keys = iter(jax.random.split(key, 2 * len(widths) + 3))
    pixels = (shape[0] >> len(widths)) * (shape[1] >> len(widths))
    return SmallClassifier(
        conv(next(keys), 4, widths[0]),
        tuple(conv(next(keys), w, w) for w in widths),
        tuple(dense(next(keys), 4 * a, b) for a, b in pairwise(widths)),
        dense(next(keys), pixels * widths[-1], features),
        dense(next(keys), features, classes, gain=0.1),
    )


class WideBlock(eqx.Module):
    """A pre-activation block of a wide residual network; `stride` two halves the map."""

    norms: tuple[Norm, Norm]
    first: Conv
    second: Conv
    shortcut: Conv | None
    stride: int = eqx.field(static=True)

    def __call__(self, h: Float[Array, "height width _in"]) -> Float[Array, "_low _wide _out"]:
        """Map one image."""
        active = jax.nn.relu(self.norms[0](h))
        out = self.first(active)[:: self.stride, :: self.stride]
        out = self.second(jax.nn.relu(self.norms[1](out)))
        return out + (h if self.shortcut is None else self.shortcut(active)[:: self.stride, :: self.stride])


class WideResNet(eqx.Module):
    """WideResNet-16-8, the paper's classifier: three groups of two blocks, features averaged over the map."""

    stem: Conv
    blocks: tuple[WideBlock, ...]
    norm: Norm
    classes_map: Dense

    def features(self, x: Float[Array, "height width channels"]) -> Float[Array, " features"]:
        """Return the features of one image."""
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return jnp.mean(jax.nn.relu(self.norm(h)), axis=(0, 1))

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, " classes"]:
        """Return the classes' logits."""
        return self.classes_map(self.features(x))


def wide_resnet(
    key: Key[Array, ""], *, widen: int = 8, blocks: int = 2, classes: int = 10, channels: int = 1
) -> WideResNet:
    """Build a wide residual network of `6 blocks + 4` layers."""
    sizes, made, n_in = (16 * widen, 32 * widen, 64 * widen), [], 16
    key_stem, key_head, key_blocks = jax.random.split(key, 3)
    keys = iter(jax.random.split(key_blocks, 9 * blocks))
    for group, n_out in enumerate(sizes):
        for block in range(blocks):
            stride = 2 if group and not block else 1
            shortcut = conv(next(keys), n_in, n_out, side=1, bias=False) if n_in != n_out else None
            first = conv(next(keys), n_in, n_out, bias=False)
            second = conv(next(keys), n_out, n_out, bias=False)
            made.append(WideBlock((norm(n_in), norm(n_out)), first, second, shortcut, stride))
            n_in = n_out
    return WideResNet(
        conv(key_stem, channels, 16, bias=False), tuple(made), norm(n_in), dense(key_head, n_in, classes)
    )
