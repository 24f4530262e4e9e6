"""Noise levels and the loss that learns from them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, UInt8

Image = Float[Array, "height width 1"]
Batch = Float[Array, "n height width 1"]


def levels(key: Key[Array, ""], n: int, low: float, high: float) -> Float[Array, " n"]:
    """Return `n` noise levels, log-uniform on `[low, high]`, one in each of `n` equal parts."""
    share = (jnp.arange(n) + jax.random.uniform(key, (n,))) / n
    return low * (high / low) ** share


def minibatch(key: Key[Array, ""], pixels: UInt8[Array, "images height width"], n: int) -> Batch:
    """Return `n` images chosen with replacement, as numbers from 0 to 1."""
    chosen = jax.random.randint(key, (n,), 0, pixels.shape[0])
    return pixels[chosen].astype(jnp.float32)[..., None] / 255.0


def noisy(
    key: Key[Array, ""], x: Batch, low: float, high: float
) -> tuple[Batch, Batch, Float[Array, "n 1 1 1"]]:
    """Return `x + sigma eps`, `eps` and `sigma`."""
    key_sigma, key_eps = jax.random.split(key)
    sigma = levels(key_sigma, x.shape[0], low, high)[:, None, None, None]
    eps = jax.random.normal(key_eps, x.shape)
    return x + sigma * eps, eps, sigma


def denoising_loss(
    slope: Callable[[Image], Image],
    noised: Batch,
    eps: Batch,
    weight: Float[Array, "n 1 1 1"] | float = 1.0,
) -> Float[Array, ""]:
    """Return `mean weight |slope(x + sigma eps) - eps|^2`: denoising score matching of `-slope / sigma`.

    Without a `weight` that is the loss of the scores times `sigma^2`.
    """
    return jnp.mean(weight * (jax.vmap(slope)(noised) - eps) ** 2)
