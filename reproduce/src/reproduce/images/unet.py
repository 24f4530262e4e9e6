"""A small U-Net from an image to an image, made for one core: nothing runs at full resolution."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count
from reproduce.images.layers import Conv, Dense, conv, dense, fold, unfold

CENTRE = 0.13
"""The mean pixel of MNIST: where an image is measured from. Other data move it by their biases."""


class Block(eqx.Module):
    """`h + conv(silu(conv(silu(h))))`."""

    first: Conv
    second: Conv

    def __call__(self, h: Float[Array, "height width channels"]) -> Float[Array, "height width channels"]:
        """Map one image."""
        return h + self.second(jax.nn.silu(self.first(jax.nn.silu(h))))


class UNet(eqx.Module):
    """A denoiser `D(x)`: fold by two, down two levels, a dense middle, up two levels, unfold.

    In high noise all that is left of an image is how it stands to the main directions of the data, each of
    which has all pixels in it. Convolutions are slow to learn such sums; two dense layers on the coarsest map
    are not.

    Its input is `x` measured from `CENTRE` and brought to about unit size, by `x`'s own size and not by a
    noise level: so one net serves all noise levels without being told which.
    """

    stem: Conv
    downs: tuple[Dense, ...]
    ups: tuple[Dense, ...]
    before: tuple[Block, ...]
    middle: tuple[Dense, Dense]
    after: tuple[Block, ...]
    head: Conv

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, "height width channels"]:
        """Return the clean image that `x` comes from, as the net sees it."""
        *kept, h = self.down(x)
        for up, block, skip in zip(self.ups, self.after, reversed(kept), strict=True):
            h = block(skip + unfold(up(h)))
        return CENTRE + unfold(self.head(jax.nn.silu(h)))

    def down(self, x: Float[Array, "height width channels"]) -> list[Float[Array, "_high _wide _channels"]]:
        """Return what the net sees in `x` on each level, from the finest to the coarsest."""
        centred = x - CENTRE
        h = self.stem(fold(centred * lax.rsqrt(jnp.mean(centred**2) + 0.05)))
        seen = [self.before[0](h)]
        for down, block in zip(self.downs, self.before[1:], strict=True):
            seen.append(block(down(fold(seen[-1]))))
        gather, spread = self.middle
        whole = gather(jax.nn.silu(seen[-1]).reshape(-1))
        seen[-1] += spread(jax.nn.silu(whole)).reshape(seen[-1].shape)
        return seen


def unet(
    key: Key[Array, ""],
    widths: tuple[int, ...] = (16, 48, 96),
    *,
    shape: tuple[int, int],
    middle: int = 128,
    channels: int = 1,
) -> UNet:
    """Build a U-Net with one block a level; image sides must be multiples of `2 ** len(widths)`.

    **Arguments:**

    - `widths`: channels at 1/2, 1/4, ... of the resolution.
    - `shape`: height and width of an image; `middle`: units between the two dense layers.
    - `channels`: of the image.
    """
    widths = tuple(check_count(w, "widths") for w in widths)
    pairs = list(pairwise(widths))
    keys = iter(jax.random.split(key, 6 * len(widths) + 2))
    by = 2 ** len(widths)
    if shape[0] % by or shape[1] % by:
        raise ValueError(f"`shape` must be of multiples of {by}; got {shape}. Pad the images.")
    size = (shape[0] // by) * (shape[1] // by) * widths[-1]

    def block(width: int) -> Block:
        return Block(conv(next(keys), width, width), conv(next(keys), width, width, gain=0.1))

    return UNet(
        stem=conv(next(keys), 4 * channels, widths[0]),
        downs=tuple(dense(next(keys), 4 * low, high) for low, high in pairs),
        ups=tuple(dense(next(keys), high, 4 * low) for low, high in reversed(pairs)),
        before=tuple(block(w) for w in widths),
        middle=(dense(next(keys), size, middle), dense(next(keys), middle, size, gain=0.1)),
        after=tuple(block(w) for w in reversed(widths[:-1])),
        head=conv(next(keys), widths[0], 4 * channels, gain=0.1),
    )
