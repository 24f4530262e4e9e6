"""A small U-Net from an image to an image, made for one core, and what stands on it: score nets, critics."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from pushforward.checks import check_count
from reproduce.images.layers import Conv, Dense, conv, dense, fold, unfold

CENTRE = 0.13  # the mean pixel of MNIST: where an image is measured from. Other data move it by their biases.


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
    """Build a U-Net with one block a level; image sides must be multiples of `2 ** len(widths)`."""
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
