"""Sums over the rows of a logistic likelihood: chunk by chunk, accurate to rounding, exact derivatives.

A row is a feature vector times its label (`+1` or `-1`), so that its log likelihood is
`log sigmoid(row . w)`. Rows of zeros add nothing and fill the last chunk.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float


def by_one_pass(both: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """Return a function's value alone, whose gradient in the first argument is the slope of the same pass.

    The other arguments are data, hence constants: no derivative reaches them.
    """

    @jax.custom_jvp
    def value_of(*arguments):
        return both(*arguments)[0]

    def rule(primals, tangents):
        value, slope = both(*primals)
        moved = tangents[0]
        return value, jnp.zeros_like(value) if isinstance(moved, SymbolicZero) else slope @ moved

    # Symbolic zeros, or a tangent of zeros as large as the data would be made.
    value_of.defjvp(rule, symbolic_zeros=True)
    return value_of


def value_and_slope(
    weights: Float[Array, " weights"],
    origin: Float[Array, " weights"],
    slope: Float[Array, " weights"] | None,
    rows: Float[Array, "chunks size weights"],
    margins: Float[Array, "chunks size"],
) -> tuple[Float[Array, ""], Float[Array, " weights"]]:
    """Return `sum_i log sigmoid(row_i . w) - log sigmoid(margin_i)` and its gradient.

    `margins` are `row_i . origin`, where the sum is zero. The difference is taken row by row, before the sum:
    half a million terms of one sign would leave nothing of the last digits, which is where an accept step
    looks. With a known `slope`, the gradient at `origin`, only the change from it is summed. A chunk's worth
    of memory is all that is used, in derivatives as well.
    """
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


log_likelihood = by_one_pass(value_and_slope)
