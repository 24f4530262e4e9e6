"""Constraints of the last axis: simplex, order, zero sum, the L1 ball."""

import math

import numpy as np

from pushforward.parameters.kind import Kind, Module, Shape, Values, arctanh, expected, log_sech2, softplus


def _vector(shape: Shape) -> Shape:
    """Return `shape` if it has a last axis of at least one number."""
    if len(shape) < 1 or shape[-1] < 1:
        raise expected(shape, "a vector, so at least one axis")
    return shape


def _later(u: Values) -> np.ndarray:
    """Return how many pieces of a stick are broken off after each."""
    return np.arange(u.shape[-1])[::-1].astype(u.dtype)


# Stick-breaking: `y_k = sigmoid(v_k) prod_{j<k} sigmoid(-v_j)`, `v_k = u_k - log(K - 1 - k)`.
# The shift makes `u = 0` the centre of the simplex.


def _offsets(u: Values) -> np.ndarray:
    return np.log(np.arange(u.shape[-1], 0, -1)).astype(u.dtype)


def _break_stick(xp: Module, u: Values) -> Values:
    v = u - _offsets(u)
    left = xp.cumsum(-softplus(xp, v), axis=-1)
    zero = xp.zeros_like(u[..., :1]) if u.shape[-1] else xp.zeros((*u.shape[:-1], 1), u.dtype)
    before = xp.concatenate([zero, left], axis=-1)
    taken = xp.concatenate([-softplus(xp, -v), zero], axis=-1)
    return xp.maximum(xp.exp(before + taken), np.finfo(u.dtype).tiny)


def _breaks(xp: Module, y: Values) -> Values:
    """Return the logit of each break: a piece against all that is left after it."""
    after = xp.cumsum(y[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    u = xp.log(y[..., :-1]) - xp.log(after)
    return u + _offsets(u)


def _break_log_det(xp: Module, u: Values) -> Values:
    """Return the sum of the logs of `sigmoid(v_k) sigmoid(-v_k)` and of what was left before it."""
    v = u - _offsets(u)
    # What is left after break j shortens the breaks after it, K - 2 - j of them.
    return (-softplus(xp, -v) - (1 + _later(u)) * softplus(xp, v)).sum(-1)


def _one_fewer(shape: Shape) -> Shape:
    return (*_vector(shape)[:-1], shape[-1] - 1)


SIMPLEX = Kind(_break_stick, _breaks, _break_log_det, _one_fewer)


# Order: `y_0 = u_0`, `y_k = y_{k-1} + exp(u_k)`; and the exponential of an ordered vector.


def _climb(xp: Module, u: Values) -> Values:
    return xp.cumsum(xp.concatenate([u[..., :1], xp.exp(u[..., 1:])], axis=-1), axis=-1)


def _steps(xp: Module, y: Values) -> Values:
    return xp.concatenate([y[..., :1], xp.log(y[..., 1:] - y[..., :-1])], axis=-1)


ORDERED = Kind(_climb, _steps, lambda xp, u: u[..., 1:].sum(-1), _vector)

POSITIVE_ORDERED = Kind(
    lambda xp, u: xp.exp(_climb(xp, u)),
    lambda xp, y: _steps(xp, xp.log(y)),
    # That of the steps and that of `exp`, which is the sum of the ordered vector.
    lambda xp, u: u[..., 1:].sum(-1) + _climb(xp, u).sum(-1),
    _vector,
)


# An isometry of R^(n-1) onto the vectors of R^n that sum to zero, as PyMC and NumPyro have it.


def _append_and_centre(xp: Module, u: Values) -> Values:
    n, total = u.shape[-1] + 1, u.sum(-1, keepdims=True)
    shift = total / (math.sqrt(n) + n)
    return xp.concatenate([u, shift - total / math.sqrt(n)], axis=-1) - shift


def _uncentre(xp: Module, y: Values) -> Values:
    """Undo both, from what the appended coordinate says."""
    del xp
    n = y.shape[-1]
    return y[..., :-1] - y[..., -1:] * (math.sqrt(n) / (math.sqrt(n) + n))


def _two_or_more(shape: Shape) -> Shape:
    if _vector(shape)[-1] < 2:
        raise expected(shape, "at least two numbers in its last axis")
    return _one_fewer(shape)


ZERO_SUM = Kind(_append_and_centre, _uncentre, lambda xp, u: xp.zeros_like(u[..., 0]), _two_or_more)


# Vectors whose absolute values sum to less than one: `y_k = tanh(u_k) prod_{j<k} (1 - |tanh(u_j)|)`.


def _break_with_signs(xp: Module, u: Values) -> Values:
    left = xp.cumsum(_log_rest(xp, u[..., :-1]), axis=-1)
    return xp.tanh(u) * xp.exp(xp.concatenate([xp.zeros_like(u[..., :1]), left], axis=-1))


def _signed_breaks(xp: Module, y: Values) -> Values:
    """Return the inverse `tanh` of each piece over what was left before it."""
    taken = xp.cumsum(xp.abs(y[..., :-1]), axis=-1)
    left = xp.concatenate([xp.ones_like(y[..., :1]), 1.0 - taken], axis=-1)
    return arctanh(xp, y / xp.maximum(left, np.finfo(y.dtype).tiny))


def _signed_log_det(xp: Module, u: Values) -> Values:
    """Return the sum of the logs of `1 - tanh^2` and of what was left before each piece."""
    return (log_sech2(xp, u) + _later(u) * _log_rest(xp, u)).sum(-1)


def _log_rest(xp: Module, u: Values) -> Values:
    """Return `log(1 - |tanh u|)`."""
    size = xp.abs(u)
    return math.log(2.0) - 2.0 * size - softplus(xp, -2.0 * size)


L1_BALL = Kind(_break_with_signs, _signed_breaks, _signed_log_det, _vector)
