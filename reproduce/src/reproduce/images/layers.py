"""What image networks are made of, for one image of `(height, width, channels)`: maps, moves, a norm."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

AXES = ("NHWC", "HWIO", "NHWC")


class Conv(eqx.Module):
    """A convolution with stride one that keeps the size: odd kernels, zeros outside."""

    kernel: Float[Array, "_side _side _in _out"]
    bias: Float[Array, " _out"] | None

    def __call__(self, h: Float[Array, "height width _in"]) -> Float[Array, "height width _out"]:
        """Map one image."""
        out = lax.conv_general_dilated(h[None], self.kernel, (1, 1), "SAME", dimension_numbers=AXES)[0]
        return out if self.bias is None else out + self.bias


class Dense(eqx.Module):
    """`h -> h W + b` over the last axis: a vector, or every pixel of an image alike."""

    weight: Float[Array, "_in _out"]
    bias: Float[Array, " _out"] | None

    def __call__(self, h: Float[Array, "*where _in"]) -> Float[Array, "*where _out"]:
        """Map the last axis."""
        out = h @ self.weight
        return out if self.bias is None else out + self.bias


class Norm(eqx.Module):
    """Each pixel's channels brought to unit root mean square, then scaled and shifted by channel.

    Unlike batch normalisation it needs no other image and keeps no running averages, so a draw depends on
    its latent alone.
    """

    scale: Float[Array, " _channels"]
    shift: Float[Array, " _channels"]

    def __call__(self, h: Float[Array, "*where _channels"]) -> Float[Array, "*where _channels"]:
        """Normalise."""
        size = lax.rsqrt(jnp.mean(h * h, axis=-1, keepdims=True) + 1e-4)
        return h * size * self.scale + self.shift


def conv(
    key: Key[Array, ""], n_in: int, n_out: int, *, side: int = 3, gain: float = 1.0, bias: bool = True
) -> Conv:
    """Build a convolution with weights `N(0, gain^2 / fan_in)` and a bias of zeros."""
    kernel = gain * jax.random.normal(key, (side, side, n_in, n_out)) / jnp.sqrt(side * side * n_in)
    return Conv(kernel, jnp.zeros(n_out) if bias else None)


def dense(key: Key[Array, ""], n_in: int, n_out: int, *, gain: float = 1.0, bias: bool = True) -> Dense:
    """Build a linear map with weights `N(0, gain^2 / n_in)` and a bias of zeros."""
    return Dense(
        gain * jax.random.normal(key, (n_in, n_out)) / jnp.sqrt(n_in), jnp.zeros(n_out) if bias else None
    )


def norm(channels: int) -> Norm:
    """Build a norm that starts without scale and shift."""
    return Norm(jnp.ones(channels), jnp.zeros(channels))


def fold(h: Float[Array, "height width channels"], by: int = 2) -> Float[Array, "_low _wide _deep"]:
    """Return blocks of `by` x `by` pixels as channels: space to depth."""
    height, width, channels = h.shape
    parts = h.reshape(height // by, by, width // by, by, channels)
    return parts.transpose(0, 2, 1, 3, 4).reshape(height // by, width // by, by * by * channels)


def unfold(h: Float[Array, "height width channels"], by: int = 2) -> Float[Array, "_high _wide _shallow"]:
    """Return channels as blocks of `by` x `by` pixels: the inverse of `fold`."""
    height, width, channels = h.shape
    parts = h.reshape(height, width, by, by, channels // (by * by))
    return parts.transpose(0, 2, 1, 3, 4).reshape(height * by, width * by, channels // (by * by))


def halve(h: Float[Array, "height width channels"]) -> Float[Array, "_low _wide channels"]:
    """Return the mean over blocks of two by two pixels."""
    height, width, channels = h.shape
    return h.reshape(height // 2, 2, width // 2, 2, channels).mean(axis=(1, 3))
