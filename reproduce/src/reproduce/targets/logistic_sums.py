"""Sums over the rows of a logistic likelihood: chunk by chunk, accurate to rounding, exact derivatives.

A row is a feature vector times its label (`+1` or `-1`), so that its log likelihood is
`log sigmoid(row . w)`. Rows of zeros add nothing and fill the last chunk.
"""

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float


@jax.custom_jvp
def log_likelihood(
    weights: Float[Array, " weights"],
    origin: Float[Array, " weights"],
    slope: Float[Array, " weights"] | None,
    rows: Float[Array, "chunks size weights"],
    margins: Float[Array, "chunks size"],
) -> Float[Array, ""]:
    """Return `sum_i log sigmoid(row_i . w) - log sigmoid(margin_i)`.

    `margins` are `row_i . origin`. The difference is taken row by row, before the sum: half a million
    terms of one sign would leave nothing of the last digits, which is where an accept step looks. The
    gradient comes out of the same pass over the data. Data are constants: no derivative reaches them.

    **Arguments:**

    - `weights`: of the one point.
    - `origin`, `margins`: where the sum is zero.
    - `slope`: the gradient at `origin` if it is known; then only the change from it is summed.
    - `rows`: in chunks; a chunk's worth of memory is all that is used, in derivatives as well.
    """
    return value_and_slope(weights, origin, slope, rows, margins)[0]


def value_and_slope(
    weights: Float[Array, " weights"],
    origin: Float[Array, " weights"],
    slope: Float[Array, " weights"] | None,
    rows: Float[Array, "chunks size weights"],
    margins: Float[Array, "chunks size"],
) -> tuple[Float[Array, ""], Float[Array, " weights"]]:
    """Return the value of `log_likelihood` and its gradient in one pass."""
    moved = weights - origin

    @jax.checkpoint
    def chunk(carry, data):
        value, total = carry
        some, at_origin = data
        margin = at_origin + some @ moved
        value += jnp.sum(jax.nn.log_sigmoid(margin) - jax.nn.log_sigmoid(at_origin))
        missing = jax.nn.sigmoid(-margin)
        if slope is not None:
            missing -= jax.nn.sigmoid(-at_origin)
        return (value, total + missing @ some), None

    start = (jnp.zeros((), rows.dtype), jnp.zeros_like(weights) if slope is None else slope)
    if rows.shape[0] == 1:
        return chunk(start, (rows[0], margins[0]))[0]
    return jax.lax.scan(chunk, start, (rows, margins))[0]


def _rule(primals, tangents):
    value, slope = value_and_slope(*primals)
    moved = tangents[0]
    if isinstance(moved, SymbolicZero):
        return value, jnp.zeros_like(value)
    return value, slope @ moved


# Symbolic zeros, or a tangent of zeros as large as the data would be made.
log_likelihood.defjvp(_rule, symbolic_zeros=True)
