"""Radial kernels, their Langevin Stein kernels in closed form, and the tables they are made of.

Every table over pairs is built coordinate by coordinate where there are few, since XLA turns that
into one vectorised pass: 0.5 ms for 1,024 x 1,024 pairs in 2-D, against 7 ms for `vmap` over pairs.
"""

import abc
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

FEW_COORDINATES = 8
"""Up to here, differences are taken one coordinate at a time; beyond, by matrix products.

The expanded form ||x||^2 + ||y||^2 - 2 x.y loses all digits of a small distance between two points
far from the origin (the Funnel's reach 1e4, hence errors of order 10 in single precision). In few
dimensions the direct form is both exact and faster; in many it costs too much.
"""


Profile: TypeAlias = tuple[Float[Array, "*shape"], Float[Array, "*shape"], Float[Array, "*shape"]]
"""A function of the squared distance, and its first two derivatives."""


class RadialKernel(eqx.Module):
    """A kernel `k(x, y) = phi(||x - y||^2)`; an author writes `profile`."""

    @abc.abstractmethod
    def profile(self, square: Float[Array, "*shape"]) -> Profile:
        """Return `phi`, `phi'` and `phi''` at the squared distance."""

    def gram(self, x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Float[Array, "n m"]:
        """Return `k` of every pair."""
        return self.profile(squared_distances(x, y))[0]

    def stein_gram(
        self,
        x: Float[Array, "n dim"],
        y: Float[Array, "m dim"],
        score_x: Float[Array, "n dim"],
        score_y: Float[Array, "m dim"],
    ) -> Float[Array, "n m"]:
        """Return the Langevin Stein kernel `k0` of every pair. Its mean is the squared KSD.

        With `d = x - y` and `u = ||d||^2` (facts 2.1, 2.3),

            k0 = s_x.s_y phi - 2 phi' (s_x - s_y).d - 2 dim phi' - 4 u phi''.
        """
        square, drift = squared_distances(x, y), _products_of_differences(score_x, score_y, x, y)
        phi, first, second = self.profile(square)
        scores = _products(score_x, score_y)
        return scores * phi - 2 * first * (drift + x.shape[1]) - 4 * square * second


class IMQ(RadialKernel):
    """The inverse multiquadric `k = (c^2 + ||x - y||^2)^beta`; the paper has c = 1, beta = -1/2."""

    c: float = 1.0
    beta: float = eqx.field(default=-0.5, static=True)

    def __check_init__(self):
        """Refuse exponents for which the KSD says nothing."""
        if not -1 < self.beta < 0:
            raise ValueError(
                f"`beta` must lie between -1 and 0, or the KSD no longer tells a sequence that "
                f"converges from one that does not; got {self.beta}."
            )

    def profile(self, square: Float[Array, "*shape"]) -> Profile:
        """Return `B^beta`, `beta B^(beta-1)`, `beta (beta-1) B^(beta-2)` with `B = c^2 + u`."""
        base = self.c**2 + square
        # `pow` is not vectorised on CPU: twelve times the cost of `rsqrt`.
        phi = jax.lax.rsqrt(base) if self.beta == -0.5 else jnp.exp(self.beta * jnp.log(base))
        first = self.beta * phi / base
        return phi, first, (self.beta - 1) * first / base


class RBF(RadialKernel):
    """The Gaussian kernel `k = exp(-||x - y||^2 / (2 h^2))`."""

    bandwidth: float | Float[Array, ""] = 1.0

    def profile(self, square: Float[Array, "*shape"]) -> Profile:
        """Return `phi`, `-phi / (2 h^2)`, `phi / (4 h^4)`."""
        rate = 0.5 / self.bandwidth**2
        phi = jnp.exp(-rate * square)
        return phi, -rate * phi, rate**2 * phi


def squared_distances(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Float[Array, "n m"]:
    """Return `||x_i - y_j||^2` for every pair."""
    return jnp.maximum(_products_of_differences(x, y, x, y), 0)


def median_bandwidth(x: Float[Array, "n dim"]) -> Float[Array, ""]:
    """Return the bandwidth of Liu and Wang's SVGD for an `RBF` (facts 3.2).

        h^2 = median over all n^2 pairs of ||x_i - x_j||^2 / (2 log(n + 1)),

    the n zeros of the diagonal included.
    """
    return jnp.sqrt(0.5 * median(squared_distances(x, x)) / jnp.log(x.shape[0] + 1.0))


def median(values: Float[Array, "n m"]) -> Float[Array, ""]:
    """Return the median of a table of non-negative numbers, exactly, without sorting them.

    Such floats are ordered like their bit patterns, so that the middle one is found bit by bit, in
    as many counts as there are bits. XLA's sort on CPU takes 280 ms for a million numbers, this 6.
    """
    size, bits = values.size, 8 * values.dtype.itemsize
    integer = {32: jnp.int32, 64: jnp.int64}[bits]
    patterns = jax.lax.bitcast_convert_type(jnp.abs(values), integer)

    def count(chosen: Bool[Array, "n m"]) -> Int[Array, ""]:
        # Counting rows by a product is five times as fast as a sum of booleans, and exact.
        ones = jnp.ones(chosen.shape[1], jnp.float32)
        return jnp.sum((chosen.astype(jnp.float32) @ ones).astype(int))

    def decide(index: Int[Array, ""], pattern: Int[Array, ""]) -> Int[Array, ""]:
        candidate = pattern | (jnp.ones((), integer) << (bits - 2 - index).astype(integer))
        return jnp.where(count(patterns < candidate) <= (size - 1) // 2, candidate, pattern)

    # The largest pattern with no more than half of the others below it: the lower middle value.
    lower = jax.lax.fori_loop(0, bits - 1, decide, jnp.zeros((), integer))
    above = jnp.min(jnp.where(patterns > lower, patterns, jnp.iinfo(integer).max))
    # An even number of values has two in the middle, which are often the same.
    upper = jnp.where(count(patterns <= lower) > size // 2, lower, above)
    low, high = (jax.lax.bitcast_convert_type(each, values.dtype) for each in (lower, upper))
    return 0.5 * (low + high)


def _products_of_differences(
    a: Float[Array, "n dim"], b: Float[Array, "m dim"], x: Float[Array, "n dim"], y: Float[Array, "m dim"]
) -> Float[Array, "n m"]:
    """Return `(a_i - b_j).(x_i - y_j)` for every pair."""
    dim = x.shape[1]
    if dim <= FEW_COORDINATES:
        return sum((a[:, None, k] - b[None, :, k]) * (x[:, None, k] - y[None, :, k]) for k in range(dim))  # pyright: ignore[reportReturnType]
    # Both factors are differences, so a common origin may be taken away to save digits.
    a, b = a - jnp.mean(b, axis=0), b - jnp.mean(b, axis=0)
    x, y = x - jnp.mean(y, axis=0), y - jnp.mean(y, axis=0)
    own_x, own_y = jnp.sum(a * x, axis=1), jnp.sum(b * y, axis=1)
    return own_x[:, None] + own_y[None, :] - a @ y.T - x @ b.T


def _products(a: Float[Array, "n dim"], b: Float[Array, "m dim"]) -> Float[Array, "n m"]:
    """Return `a_i.b_j` for every pair: nothing cancels here, but small dims vectorise as above."""
    if a.shape[1] > FEW_COORDINATES:
        return a @ b.T
    return sum(a[:, None, k] * b[None, :, k] for k in range(a.shape[1]))  # pyright: ignore[reportReturnType]
