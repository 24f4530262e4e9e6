"""Constraints of the last two axes: Cholesky factors, correlation and covariance matrices."""

import math

import numpy as np

from pushforward.parameters.kind import Kind, Shape, Values, expected, namespace, square
from pushforward.parameters.vectors import log_sech2


def _lower(vector: Values, n: int) -> Values:
    """Return matrices with the vector, row by row, strictly below their diagonals."""
    xp, places = namespace(vector), np.zeros((n, n), int)
    rows, columns = np.tril_indices(n, -1)
    places[rows, columns] = 1 + np.arange(len(rows))
    padded = xp.concatenate([xp.zeros((*vector.shape[:-1], 1), vector.dtype), vector], axis=-1)
    return padded[..., places]


def _below(matrix: Values) -> Values:
    """Return what stands strictly below the diagonals, row by row."""
    rows, columns = np.tril_indices(matrix.shape[-1], -1)
    return matrix[..., rows, columns]


def _diagonal(matrix: Values) -> Values:
    return namespace(matrix).diagonal(matrix, axis1=-2, axis2=-1)


def _times_own_transpose(factor: Values) -> Values:
    xp = namespace(factor)
    return xp.matmul(factor, xp.swapaxes(factor, -1, -2))


class CorrelationCholesky(Kind):
    """The Cholesky factor of a correlation matrix: rows of length one.

    `y_ij = t_ij prod_{k<j} sqrt(1 - t_ik^2)` with `t = tanh(u)` below the diagonal and 1 on it.
    """

    event_ndim = 2

    def free_shape(self, shape: Shape) -> Shape:
        """Return one coordinate for each correlation."""
        n = square(shape)
        return (*shape[:-2], n * (n - 1) // 2)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Break a stick of squared lengths in every row."""
        xp, n = namespace(u), _size(u.shape[-1], strict=True)
        rest = xp.exp(0.5 * xp.cumsum(_lower(log_sech2(u), n), axis=-1))
        before = xp.concatenate([xp.ones((*rest.shape[:-1], 1), u.dtype), rest[..., :-1]], axis=-1)
        factor = (_lower(xp.tanh(u), n) + np.eye(n, dtype=u.dtype)) * before
        # The diagonal of a row far out would round to zero, and its logarithm is what densities take.
        return xp.where(np.eye(n, dtype=bool), xp.maximum(factor, np.finfo(u.dtype).tiny), factor)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return the inverse `tanh` of each entry over the length that its row had left."""
        xp, eps = namespace(y), np.finfo(y.dtype).eps
        left = xp.sqrt(xp.cumsum((y * y)[..., ::-1], axis=-1)[..., ::-1])
        ratio = _below(y) / xp.maximum(_below(left), np.finfo(y.dtype).tiny)
        return xp.arctanh(xp.clip(ratio, eps - 1.0, 1.0 - eps))

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return `sum_ij (1 + (i - 1 - j) / 2) log(1 - t_ij^2)`: an entry shortens those right of it."""
        rows, columns = np.tril_indices(_size(u.shape[-1], strict=True), -1)
        weights = (1.0 + 0.5 * (rows - 1 - columns)).astype(u.dtype)
        return (weights * log_sech2(u)).sum(-1)


class CorrelationMatrix(Kind):
    """A correlation matrix, through its Cholesky factor."""

    event_ndim = 2

    def free_shape(self, shape: Shape) -> Shape:
        """Return one coordinate for each correlation."""
        return CorrelationCholesky().free_shape(shape)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `L L^T`."""
        return _times_own_transpose(CorrelationCholesky().constrain(u, low, high))

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Factorise first."""
        return CorrelationCholesky().unconstrain(namespace(y).linalg.cholesky(y), low, high)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return that of the factor and `sum_i (n - 1 - i) log L_ii`."""
        n = _size(u.shape[-1], strict=True)
        # log L_ii is half the sum of its row's log(1 - t^2).
        rows, _ = np.tril_indices(n, -1)
        square_root = 0.5 * ((n - 1 - rows).astype(u.dtype) * log_sech2(u)).sum(-1)
        return CorrelationCholesky().log_det(u, low, high) + square_root


class LowerCholesky(Kind):
    """A lower triangular factor: free below the diagonal, `exp` on it (the last coordinates)."""

    event_ndim = 2

    def free_shape(self, shape: Shape) -> Shape:
        """Return one coordinate for each entry of the triangle."""
        n = square(shape)
        return (*shape[:-2], n * (n + 1) // 2)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Fill the triangle."""
        xp, n = namespace(u), _size(u.shape[-1], strict=False)
        diagonal = xp.exp(u[..., u.shape[-1] - n :])
        return _lower(u[..., : u.shape[-1] - n], n) + diagonal[..., None] * np.eye(n, dtype=u.dtype)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Read the triangle."""
        xp = namespace(y)
        return xp.concatenate([_below(y), xp.log(_diagonal(y))], axis=-1)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return the sum of the diagonal's coordinates."""
        return u[..., u.shape[-1] - _size(u.shape[-1], strict=False) :].sum(-1)


class PositiveDefinite(Kind):
    """A positive definite matrix, through its Cholesky factor."""

    event_ndim = 2

    def free_shape(self, shape: Shape) -> Shape:
        """Return one coordinate for each entry of the triangle."""
        return LowerCholesky().free_shape(shape)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `L L^T`."""
        return _times_own_transpose(LowerCholesky().constrain(u, low, high))

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Factorise first."""
        return LowerCholesky().unconstrain(namespace(y).linalg.cholesky(y), low, high)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return that of the factor and `n log 2 + sum_i (n - i) log L_ii`."""
        n = _size(u.shape[-1], strict=False)
        logs = u[..., u.shape[-1] - n :]
        return ((1 + n - np.arange(n)).astype(u.dtype) * logs).sum(-1) + n * math.log(2.0)


class PackedCholesky(Kind):
    """A lower triangle written row by row in one vector, its diagonal positive: PyMC's `LKJCholeskyCov`."""

    event_ndim = 1

    def free_shape(self, shape: Shape) -> Shape:
        """Return the same shape, if it is that of a triangle."""
        if not shape or shape[-1] < 1 or shape[-1] != (n := _size(shape[-1], strict=False)) * (n + 1) // 2:
            raise expected(shape, "a last axis of 1, 3, 6, 10, ... numbers, the entries of a triangle")
        return shape

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Exponentiate the diagonal."""
        xp, on = namespace(u), _on_diagonal(u.shape[-1])
        # Twice `where`, so that an overflow off the diagonal cannot spoil the gradient.
        return xp.where(on, xp.exp(xp.where(on, u, 0.0)), u)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Take logs of the diagonal."""
        xp, on = namespace(y), _on_diagonal(y.shape[-1])
        return xp.where(on, xp.log(xp.where(on, y, 1.0)), y)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return the sum of the diagonal's coordinates."""
        return namespace(u).where(_on_diagonal(u.shape[-1]), u, 0.0).sum(-1)


def _on_diagonal(length: int) -> np.ndarray:
    rows, columns = np.tril_indices(_size(length, strict=False))
    return rows == columns


def _size(length: int, *, strict: bool) -> int:
    """Return the size of a matrix whose triangle, without its diagonal if `strict`, has `length` entries."""
    n = (math.isqrt(1 + 8 * length) - 1) // 2
    return n + 1 if strict else n
