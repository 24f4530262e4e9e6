"""Means over all pairs of two sets, in tiles: time grows with n*m, memory with n + m."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

ROWS = 128
"""Rows per tile: with 20,000 columns a tile is 10 MB, should XLA decide to hold it."""


def mean_of_pairs(
    table: Callable[[PyTree, PyTree], Float[Array, "rows m"]],
    rows: PyTree[Float[Array, "n ..."]],
    columns: PyTree[Float[Array, "m ..."]],
    *,
    off_diagonal: bool = False,
) -> Float[Array, ""]:
    """Return the mean of `table` over every pair of a row and a column.

    With `off_diagonal` the two sets are one and the same, and the pairs (i, i) are left out: the
    U-statistic. They are masked one by one and not subtracted afterwards, since where the score
    has heavy tails the diagonal may be a million times the rest.

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
