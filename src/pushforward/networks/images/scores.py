"""Score nets of noisy images: one net for all noise levels, `s(x, sigma) = S(x) / sigma`."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.networks.images.unet import UNet


class DistanceScore(eqx.Module):
    """`S(x) = -sqrt(d) (x - D(x)) / sqrt(|x - D(x)|^2 + 1)`: to the clean image, of length `sqrt(d)`.

    The gradient of a `DistanceEnergy` but for the term that goes through `D`; so it can start from one, and
    costs one pass where that gradient costs two.
    """

    denoiser: UNet

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, "height width channels"]:
        """Return `S(x)`, the score times the noise level."""
        away = x - self.denoiser(x)
        return -jnp.sqrt(float(x.size)) * away / jnp.sqrt(jnp.sum(away**2) + 1.0)


class PlainScore(eqx.Module):
    """`S(x) = U(x)` with a U-Net: the paper's."""

    net: UNet

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, "height width channels"]:
        """Return `S(x)`, the score times the noise level."""
        return self.net(x)
