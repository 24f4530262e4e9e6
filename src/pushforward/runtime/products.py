"""Matrix products of tall tiles, cut so that the BLAS beneath NumPy does each piece on one core.

OpenBLAS spreads a product over its threads once rows x inner x columns exceeds 2^18, and its threads wait
for each other by spinning: on a machine with other work, a product of a fraction of a millisecond then takes
a hundred. NumPy hands a stack of matrices to BLAS one by one, so that a stack of small ones costs the same as
the whole and never wakes a thread; `sampler.py` shares the cores out among tiles, where nobody waits.
"""

import numpy as np

ONE_CORE = 2**18  # products of at most this size are done by the thread that asks for them
MIN_ROWS = 8  # shorter pieces would cost more than spinning threads may: products this wide are left whole


def piece_rows(weight: np.ndarray) -> int:
    """Return how many rows times a weight of shape `(in, out)` are done on one core, or 0 if too few."""
    rows = ONE_CORE // max(weight.size, 1)
    return rows if rows >= MIN_ROWS else 0


def multiply(x: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    """Set `out = x @ weight`, for `x` and `out` of contiguous rows."""
    rows = piece_rows(weight)
    whole = len(x) // rows * rows if rows else 0
    if whole:
        np.matmul(
            x[:whole].reshape(-1, rows, x.shape[1]), weight, out=out[:whole].reshape(-1, rows, out.shape[1])
        )
    if whole < len(x):
        np.matmul(x[whole:], weight, out=out[whole:])
