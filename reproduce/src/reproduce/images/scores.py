"""Score nets of noisy images: one net for all noise levels, `s(x, sigma) = S(x) / sigma`."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from reproduce.images.unet import CENTRE, UNet


class PlainScore(eqx.Module):
    """`S(x) = U(x)` with a U-Net: the paper's."""

    net: UNet

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, "height width channels"]:
        """Return `S(x)`, the score times the noise level."""
        return self.net(x)


class Correction(eqx.Module):
    """What a sampler's score is more than the energy's own: `S(x) = -grad f(x) + C(x)`.

    The two scores differ by much less than either is long, and their difference is all that moves a sampler.
    A net that learns the whole of `S` has errors larger than that.
    """

    net: UNet

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, "height width channels"]:
        """Return `C(x)`, the difference of the scores times the noise level."""
        return self.net(x) - CENTRE


def correction(denoiser: UNet) -> Correction:
    """Return a correction that is zero, with all but the last layer of a denoiser: the energy's own."""
    head = denoiser.head
    arrays = lambda net: (net.head.kernel, net.head.bias)  # noqa: E731
    bias = None if head.bias is None else jnp.zeros_like(head.bias)
    silent = eqx.tree_at(
        arrays, denoiser, (jnp.zeros_like(head.kernel), bias), is_leaf=lambda leaf: leaf is None
    )
    return Correction(silent)
