"""What a logistic regression accepts as data, and how its rows are laid out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pushforward.checks import check_positive

POINTS = 128  # points at once for which the working memory is reckoned
FEWEST_ROWS = 64  # a chunk of fewer rows spends its time on everything but arithmetic


def check_features(features: Any, *, bias: bool) -> Float[np.ndarray, "rows features"]:
    """Return features as a matrix of the default precision, or say what is wrong with them."""
    matrix = np.asarray(features)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"`features` must have shape (rows, features); got shape {matrix.shape}.")
    if matrix.dtype.kind not in "fiub":
        raise TypeError(
            f"`features` must hold numbers; got dtype {matrix.dtype}. "
            "Encode categories as columns of 0 and 1."
        )
    matrix = matrix.astype(jnp.result_type(float), copy=False)
    bad = np.asarray(~np.isfinite(matrix).all(axis=0))
    if bad.any():
        rows = int((~np.isfinite(matrix)).any(axis=1).sum())
        raise ValueError(
            f"`features` must be finite; {rows} of {len(matrix)} rows are not, in column(s) "
            f"{_first(bad)}. Drop those rows or fill the gaps."
        )
    constant = matrix.min(axis=0) == matrix.max(axis=0)
    # A model without a bias may have one column that does its work.
    if constant.any() and (bias or constant.sum() > 1 or (matrix[0] == 0)[constant].any()):
        raise ValueError(
            f"`features` must vary in every column; column(s) {_first(constant)} are constant, so that the "
            "data cannot tell their weights from the bias. Drop them."
        )
    return matrix


def check_labels(labels: Any, num_rows: int) -> Float[np.ndarray, " rows"]:
    """Return labels as `+1` and `-1`, the larger class being `+1`."""
    values = np.asarray(labels)
    if values.ndim != 1 or len(values) != num_rows:
        raise ValueError(
            f"`labels` must have shape ({num_rows},), one label a row of `features`; got {values.shape}."
        )
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"`labels` must not be NaN; {int(np.isnan(values).sum())} of {num_rows} are.")
    classes = np.unique(values)
    if len(classes) != 2:
        shown = ", ".join(map(str, classes[:8].tolist())) + (", ..." if len(classes) > 8 else "")
        raise ValueError(
            f"`labels` must be of two classes; got {len(classes)}: {shown}. For one class against the rest "
            "write `labels == one`."
        )
    return np.where(values == classes[1], 1.0, -1.0)


def chunk_rows(memory_mb: float, weights: int, num_rows: int) -> int:
    """Return how many rows to take at a time so that `POINTS` scores fit into the memory."""
    # Beside a copy of the rows: margins, sigmoids and what is between them, for every point.
    floats_a_row = weights + 3 * POINTS
    bytes_a_row = floats_a_row * np.dtype(jnp.result_type(float)).itemsize
    size = int(check_positive(memory_mb, "memory_mb") * 1e6 / bytes_a_row)
    if size < FEWEST_ROWS:
        raise ValueError(
            f"`memory_mb` must be at least {FEWEST_ROWS * bytes_a_row / 1e6:.2g} for {weights} weights; "
            f"got {memory_mb:g}. The default is 16."
        )
    # Chunks of nearly equal size, so that as few rows of zeros as possible are worked through.
    chunks = -(-num_rows // min(size, num_rows))
    return -(-num_rows // chunks)


def laid_out(
    features: Any, labels: Any, *, bias: bool, memory_mb: float = 16.0
) -> tuple[Float[Array, "chunks size weights"], Float[Array, "chunks size"], Float[Array, " weights"]]:
    """Return checked rows times their labels, in chunks filled up with zeros; margins and weights of zero."""
    matrix = check_features(features, bias=bias)
    signs, num_rows = check_labels(labels, len(matrix)), len(matrix)
    weights = matrix.shape[1] + bool(bias)
    size = chunk_rows(memory_mb, weights, num_rows)
    rows = np.pad(matrix, [(0, -num_rows % size), (0, int(bool(bias)))])
    if bias:
        rows[:num_rows, -1] = 1.0
    rows[:num_rows] *= signs[:, None].astype(rows.dtype)
    arrays = rows.reshape(-1, size, weights), np.zeros((len(rows) // size, size)), np.zeros(weights)
    # Not `jnp.asarray`, which compiles a program of its own for every new shape.
    held = [jax.device_put(np.asarray(each, rows.dtype)) for each in arrays]
    return held[0], held[1], held[2]


def _first(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(mask)[:5].tolist()
