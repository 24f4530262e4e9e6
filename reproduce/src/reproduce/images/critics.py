"""A critic of noisy images of known kinds: whether one comes from the energy or from a sampler."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from reproduce.images.layers import Dense, dense
from reproduce.images.unet import UNet

HIDDEN = 128


class Critic(eqx.Module):
    """The way down of a U-Net, then two dense layers to a log ratio.

    Where the U-Net is that of an energy, the critic knows at once what an image is made of; one that begins
    from nothing is outrun by the sampler that it should lead. Each kind of images has a direction of its own
    among the last features: within every kind the sampler shall be right, not only on the whole.
    """

    net: UNet
    middle: Dense
    last: Dense
    kinds: Float[Array, "_kinds _hidden"]

    def __call__(self, x: Float[Array, "height width channels"], kind: Int[Array, ""]) -> Float[Array, ""]:
        """Return how much likelier `x`, of a kind, is to come from the energy, as a log ratio."""
        h = self.net.down(x)[-1].reshape(-1)
        h = h * lax.rsqrt(jnp.mean(h * h) + 1e-4)
        h = jax.nn.silu(self.middle(h))
        return self.last(h)[0] + h @ self.kinds[kind]


def critic(key: Key[Array, ""], net: UNet, shape: tuple[int, int], kinds: int = 1) -> Critic:
    """Build a critic of so many kinds of images of a shape upon a U-Net."""
    key_middle, key_last = jax.random.split(key)
    levels = len(net.before)
    size = (shape[0] >> levels) * (shape[1] >> levels) * net.before[-1].first.kernel.shape[-1]
    return Critic(
        net, dense(key_middle, size, HIDDEN), dense(key_last, HIDDEN, 1), jnp.zeros((kinds, HIDDEN))
    )
