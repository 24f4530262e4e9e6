"""Inverses and determinants of small matrices, one for each of many points."""

from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Matrix: TypeAlias = Float[Array, "dim dim"]


@jax.custom_jvp
def inverse_and_log_det(matrix: Matrix) -> tuple[Matrix, Float[Array, ""]]:
    """Return the inverse and `log |det|` of a small matrix: in closed form to 2 x 2, else by elimination.

    Not by LAPACK, which is a call out of the compiled program: several times dearer to three dimensions, and
    on few cores the threads of a batch of such calls, one a draw, have been seen to wait for one another
    for ever.
    """
    if matrix.shape[0] == 1:
        return 1.0 / matrix, jnp.log(jnp.abs(matrix[0, 0]))
    if matrix.shape[0] == 2:
        (a, b), (c, d) = matrix
        det = a * d - b * c
        return jnp.array([[d, -b], [-c, a]]) / det, jnp.log(jnp.abs(det))
    return _eliminate(matrix)


@inverse_and_log_det.defjvp
def _inverse_and_log_det_jvp(primals, tangents):
    (matrix,), (change,) = primals, tangents
    inverse, log_det = inverse_and_log_det(matrix)
    return (inverse, log_det), (-inverse @ change @ inverse, jnp.sum(inverse.T * change))


def _eliminate(matrix: Matrix) -> tuple[Matrix, Float[Array, ""]]:
    """Gauss and Jordan's elimination, the largest entry left in a column as its pivot.

    Rows are never exchanged, only marked as used: which row became which is undone at the end by one product.
    """
    dim = matrix.shape[0]

    def clear(column, carry):
        rows, pivots, log_det = carry
        entries = jax.lax.dynamic_index_in_dim(rows, column, axis=1, keepdims=False)
        used = pivots.any(axis=0)
        pivot = jax.nn.one_hot(jnp.argmax(jnp.where(used, -1.0, jnp.abs(entries))), dim, dtype=rows.dtype)
        size = entries @ pivot
        row = (pivot @ rows) / size
        rows = jnp.where(pivot[:, None] > 0, row, rows - jnp.outer(entries, row))
        return rows, pivots.at[column].set(pivot > 0), log_det + jnp.log(jnp.abs(size))

    beside = jnp.concatenate([matrix, jnp.eye(dim, dtype=matrix.dtype)], axis=1)
    start = (beside, jnp.zeros((dim, dim), bool), jnp.zeros((), matrix.dtype))
    rows, pivots, log_det = jax.lax.fori_loop(0, dim, clear, start)
    return pivots.astype(matrix.dtype) @ rows[:, dim:], log_det
