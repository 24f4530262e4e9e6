"""Constraints of the last two axes: Cholesky factors, correlation and covariance matrices."""

import math
from collections.abc import Callable

import numpy as np

from pushforward.parameters.kind import Kind, Module, Shape, Values, arctanh, expected, log_sech2


def _side(shape: Shape) -> int:
    """Return the size of the square matrices that the last two axes hold."""
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 1:
        raise expected(shape, "square matrices in its last two axes")
    return shape[-1]


def _size(length: int, *, strict: bool) -> int:
    """Return the size of a matrix whose triangle, without its diagonal if `strict`, has `length` entries."""
    n = (math.isqrt(1 + 8 * length) - 1) // 2
    return n + 1 if strict else n


def _lower(xp: Module, vector: Values, n: int) -> Values:
    """Return matrices with the vector, row by row, strictly below their diagonals."""
    places = np.zeros((n, n), int)
    rows, columns = np.tril_indices(n, -1)
    places[rows, columns] = 1 + np.arange(len(rows))
    padded = xp.concatenate([xp.zeros((*vector.shape[:-1], 1), vector.dtype), vector], axis=-1)
    return padded[..., places]


def _below(matrix: Values) -> Values:
    """Return what stands strictly below the diagonals, row by row."""
    rows, columns = np.tril_indices(matrix.shape[-1], -1)
    return matrix[..., rows, columns]


def _squared(factor: Kind, log_det: Callable[[Module, Values], Values]) -> Kind:
    """Return the kind of `L L^T`, through its Cholesky factor `L`."""

    def constrain(xp: Module, u: Values) -> Values:
        lower = factor.constrain(xp, u)
        return xp.matmul(lower, xp.swapaxes(lower, -1, -2))

    def unconstrain(xp: Module, y: Values) -> Values:
        return factor.unconstrain(xp, xp.linalg.cholesky(y))

    return Kind(constrain, unconstrain, log_det, factor.free_shape)


# The Cholesky factor of a correlation matrix, rows of length one: `y_ij = t_ij prod_{k<j} sqrt(1 - t_ik^2)`
# with `t = tanh(u)` below the diagonal and 1 on it.


def _break_rows(xp: Module, u: Values) -> Values:
    """Break a stick of squared lengths in every row."""
    n = _size(u.shape[-1], strict=True)
    rest = xp.exp(0.5 * xp.cumsum(_lower(xp, log_sech2(xp, u), n), axis=-1))
    before = xp.concatenate([xp.ones((*rest.shape[:-1], 1), u.dtype), rest[..., :-1]], axis=-1)
    factor = (_lower(xp, xp.tanh(u), n) + np.eye(n, dtype=u.dtype)) * before
    # The diagonal of a row far out would round to zero, and its logarithm is what densities take.
    return xp.where(np.eye(n, dtype=bool), xp.maximum(factor, np.finfo(u.dtype).tiny), factor)


def _row_breaks(xp: Module, y: Values) -> Values:
    """Return the inverse `tanh` of each entry over the length that its row had left."""
    left = xp.sqrt(xp.cumsum((y * y)[..., ::-1], axis=-1)[..., ::-1])
    return arctanh(xp, _below(y) / xp.maximum(_below(left), np.finfo(y.dtype).tiny))


def _row_log_det(xp: Module, u: Values) -> Values:
    """Return `sum_ij (1 + (i - 1 - j) / 2) log(1 - t_ij^2)`: an entry shortens those right of it."""
    rows, columns = np.tril_indices(_size(u.shape[-1], strict=True), -1)
    weights = (1.0 + 0.5 * (rows - 1 - columns)).astype(u.dtype)
    return (weights * log_sech2(xp, u)).sum(-1)


def _correlations(shape: Shape) -> Shape:
    n = _side(shape)
    return (*shape[:-2], n * (n - 1) // 2)


def _correlation_log_det(xp: Module, u: Values) -> Values:
    """Return that of the factor and `sum_i (n - 1 - i) log L_ii`."""
    n = _size(u.shape[-1], strict=True)
    # log L_ii is half the sum of its row's log(1 - t^2).
    rows, _ = np.tril_indices(n, -1)
    square_root = 0.5 * ((n - 1 - rows).astype(u.dtype) * log_sech2(xp, u)).sum(-1)
    return _row_log_det(xp, u) + square_root


CORRELATION_CHOLESKY = Kind(_break_rows, _row_breaks, _row_log_det, _correlations)
CORRELATION_MATRIX = _squared(CORRELATION_CHOLESKY, _correlation_log_det)


# A lower triangular factor: free below the diagonal, `exp` on it (the last coordinates).


def _logs(u: Values) -> Values:
    """Return the coordinates of the diagonal."""
    return u[..., u.shape[-1] - _size(u.shape[-1], strict=False) :]


def _fill(xp: Module, u: Values) -> Values:
    n, diagonal = _size(u.shape[-1], strict=False), xp.exp(_logs(u))
    return _lower(xp, u[..., : u.shape[-1] - n], n) + diagonal[..., None] * np.eye(n, dtype=u.dtype)


def _read(xp: Module, y: Values) -> Values:
    return xp.concatenate([_below(y), xp.log(xp.diagonal(y, axis1=-2, axis2=-1))], axis=-1)


def _triangle(shape: Shape) -> Shape:
    n = _side(shape)
    return (*shape[:-2], n * (n + 1) // 2)


def _covariance_log_det(xp: Module, u: Values) -> Values:
    """Return that of the factor and `n log 2 + sum_i (n - i) log L_ii`."""
    del xp
    logs = _logs(u)
    n = logs.shape[-1]
    return ((1 + n - np.arange(n)).astype(u.dtype) * logs).sum(-1) + n * math.log(2.0)


LOWER_CHOLESKY = Kind(_fill, _read, lambda xp, u: _logs(u).sum(-1), _triangle)
POSITIVE_DEFINITE = _squared(LOWER_CHOLESKY, _covariance_log_det)


# A lower triangle written row by row in one vector, its diagonal positive: PyMC's `LKJCholeskyCov`.


def _on_diagonal(x: Values) -> np.ndarray:
    rows, columns = np.tril_indices(_size(x.shape[-1], strict=False))
    return rows == columns


def _packed(shape: Shape) -> Shape:
    if not shape or shape[-1] < 1 or shape[-1] != (n := _size(shape[-1], strict=False)) * (n + 1) // 2:
        raise expected(shape, "a last axis of 1, 3, 6, 10, ... numbers, the entries of a triangle")
    return shape


def _exp_diagonal(xp: Module, u: Values) -> Values:
    on = _on_diagonal(u)
    # Twice `where`, so that an overflow off the diagonal cannot spoil the gradient.
    return xp.where(on, xp.exp(xp.where(on, u, 0.0)), u)


def _log_diagonal(xp: Module, y: Values) -> Values:
    on = _on_diagonal(y)
    return xp.where(on, xp.log(xp.where(on, y, 1.0)), y)


PACKED_CHOLESKY = Kind(
    _exp_diagonal, _log_diagonal, lambda xp, u: xp.where(_on_diagonal(u), u, 0.0).sum(-1), _packed
)
