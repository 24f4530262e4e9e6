"""The kernel Stein discrepancy: how far draws are from a target known only through its score.

It is blind to the weights of well-separated modes (facts 2.2): read them beside `sliced_w2`.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from pushforward.base import Target
from pushforward.kernels import IMQ, RadialKernel
from pushforward.metrics.inputs import check_draws

ROWS = 128
"""Rows per tile of a table of pairs: with 20,000 columns a tile is 10 MB, should XLA decide to hold it."""


def ksd_imq_v(draws: Float[Array, "n dim"], target: Target) -> Float[Array, ""]:
    """Return the paper's KSD: the square root of the V-statistic with the IMQ kernel.

        sqrt( 1/n^2 sum over all i, j of k0(x_i, x_j) ),  k = (1 + r^2)^(-1/2)   (facts 2.1)

    The diagonal is in the sum, so that exact draws do not score 0 but about `sqrt((E||s||^2 + dim) / n)`:
    0.09 to 0.14 on the paper's targets at n = 500. Hold it against `floor`.
    """
    draws = check_draws(draws, dim=target.dim, at_least=1)
    mean = mean_stein(draws, target, IMQ(), off_diagonal=False)
    # The V-statistic cannot be negative; its rounding can.
    return jnp.sqrt(jnp.maximum(mean, 0))


@eqx.filter_jit
def mean_stein(
    draws: Float[Array, "n dim"], target: Target, kernel: RadialKernel, *, off_diagonal: bool
) -> Float[Array, ""]:
    """Return the mean of the Stein kernel over all pairs, or over all pairs of different draws."""
    scored = draws, jax.vmap(target.score)(draws)

    def table(rows, columns):
        return kernel.stein_gram(rows[0], columns[0], rows[1], columns[1])

    return mean_of_pairs(table, scored, scored, off_diagonal=off_diagonal)


def mean_of_pairs(
    table: Callable[[PyTree, PyTree], Float[Array, "rows m"]],
    rows: PyTree[Float[Array, "n ..."]],
    columns: PyTree[Float[Array, "m ..."]],
    *,
    off_diagonal: bool = False,
) -> Float[Array, ""]:
    """Return the mean of `table` over every pair of a row and a column, in time `n m` and memory `n + m`.

    With `off_diagonal` the two sets are one and the same, and the pairs (i, i) are left out: the U-statistic.
    They are masked one by one and not subtracted afterwards, since where the score has heavy tails the
    diagonal may be a million times the rest.

    **Arguments:**

    - `table`: maps some rows and all columns to the matrix of their values.
    - `rows`, `columns`: arrays, or pytrees of arrays, with one entry per draw.
    """
    n = jax.tree.leaves(rows)[0].shape[0]
    m = jax.tree.leaves(columns)[0].shape[0]
    num_tiles = -(-n // ROWS)
    missing = num_tiles * ROWS - n

    def into_tiles(leaf: Array) -> Array:
        # Repeating the last row, rather than zeros, keeps the padding inside the kernel's domain.
        padded = jnp.pad(leaf, [(0, missing), *[(0, 0)] * (leaf.ndim - 1)], mode="edge")
        return padded.reshape(num_tiles, ROWS, *leaf.shape[1:])

    def row_means(tile: tuple[PyTree, Array]) -> Float[Array, " rows"]:
        part, index = tile
        values = table(part, columns)
        if off_diagonal:
            values = jnp.where(index[:, None] == jnp.arange(m), 0, values)
        # A product with ones is twice as fast as a sum here, and adds up in blocks.
        return values @ jnp.ones(m, values.dtype) / (m - off_diagonal)

    tiles = jax.tree.map(into_tiles, rows), jnp.arange(num_tiles * ROWS).reshape(num_tiles, ROWS)
    # A mean of row means: one running sum over n*m single-precision terms would lose the digits.
    return jnp.mean(jax.lax.map(row_means, tiles).reshape(-1)[:n])
