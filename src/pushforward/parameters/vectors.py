"""Constraints of the last axis: simplex, order, zero sum, the L1 ball."""

import math

import numpy as np

from pushforward.parameters.kind import Kind, Shape, Values, expected, last_axis, namespace, softplus


class Simplex(Kind):
    """Stick-breaking: `y_k = sigmoid(v_k) prod_{j<k} sigmoid(-v_j)`, `v_k = u_k - log(K - 1 - k)`.

    The shift makes `u = 0` the centre of the simplex.
    """

    event_ndim = 1

    def free_shape(self, shape: Shape) -> Shape:
        """Return one coordinate fewer."""
        last_axis(shape)
        return (*shape[:-1], shape[-1] - 1)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Break the stick, in logarithms."""
        xp, v = namespace(u), u - _offsets(u)
        left = xp.cumsum(-softplus(v), axis=-1)
        zero = xp.zeros_like(u[..., :1]) if u.shape[-1] else xp.zeros((*u.shape[:-1], 1), u.dtype)
        before = xp.concatenate([zero, left], axis=-1)
        taken = xp.concatenate([-softplus(-v), zero], axis=-1)
        return xp.maximum(xp.exp(before + taken), np.finfo(u.dtype).tiny)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return the logit of each break: a piece against all that is left after it."""
        xp = namespace(y)
        after = xp.cumsum(y[..., ::-1], axis=-1)[..., ::-1][..., 1:]
        u = xp.log(y[..., :-1]) - xp.log(after)
        return u + _offsets(u)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return the sum of the logs of `sigmoid(v_k) sigmoid(-v_k)` and of what was left before it."""
        v = u - _offsets(u)
        # What is left after break j shortens the breaks after it, K - 2 - j of them.
        later = np.arange(u.shape[-1])[::-1].astype(u.dtype)
        return (-softplus(-v) - (1 + later) * softplus(v)).sum(-1)


def _offsets(u: Values) -> np.ndarray:
    return np.log(np.arange(u.shape[-1], 0, -1)).astype(u.dtype)


class Ordered(Kind):
    """`y_0 = u_0`, `y_k = y_{k-1} + exp(u_k)`."""

    event_ndim = 1

    def free_shape(self, shape: Shape) -> Shape:
        """Return the same shape."""
        return last_axis(shape)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Add up the steps."""
        xp = namespace(u)
        return xp.cumsum(xp.concatenate([u[..., :1], xp.exp(u[..., 1:])], axis=-1), axis=-1)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return the logs of the steps."""
        xp = namespace(y)
        return xp.concatenate([y[..., :1], xp.log(y[..., 1:] - y[..., :-1])], axis=-1)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return the sum of all but the first."""
        return u[..., 1:].sum(-1)


class PositiveOrdered(Kind):
    """The exponential of an ordered vector."""

    event_ndim = 1

    def free_shape(self, shape: Shape) -> Shape:
        """Return the same shape."""
        return last_axis(shape)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `exp` of the ordered vector."""
        return namespace(u).exp(Ordered().constrain(u, low, high))

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return the steps of the logs."""
        return Ordered().unconstrain(namespace(y).log(y), low, high)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return that of the steps and that of `exp`, which is the sum of the ordered vector."""
        return u[..., 1:].sum(-1) + Ordered().constrain(u, low, high).sum(-1)


class ZeroSum(Kind):
    """An isometry of R^(n-1) onto the vectors of R^n that sum to zero, as PyMC and NumPyro have it."""

    event_ndim = 1

    def free_shape(self, shape: Shape) -> Shape:
        """Return one coordinate fewer."""
        if last_axis(shape)[-1] < 2:
            raise expected(shape, "at least two numbers in its last axis")
        return (*shape[:-1], shape[-1] - 1)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Append a coordinate and take away the mean."""
        xp, n = namespace(u), u.shape[-1] + 1
        total = u.sum(-1, keepdims=True)
        shift = total / (math.sqrt(n) + n)
        return xp.concatenate([u, shift - total / math.sqrt(n)], axis=-1) - shift

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Undo both, from what the appended coordinate says."""
        n = y.shape[-1]
        return y[..., :-1] - y[..., -1:] * (math.sqrt(n) / (math.sqrt(n) + n))

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return zero: lengths are kept."""
        return namespace(u).zeros_like(u[..., 0])


class L1Ball(Kind):
    """Vectors whose absolute values sum to less than one: `y_k = tanh(u_k) prod_{j<k} (1 - |tanh(u_j)|)`."""

    event_ndim = 1

    def free_shape(self, shape: Shape) -> Shape:
        """Return the same shape."""
        return last_axis(shape)

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Break the stick with signs."""
        xp = namespace(u)
        left = xp.cumsum(_log_rest(u[..., :-1]), axis=-1)
        return xp.tanh(u) * xp.exp(xp.concatenate([xp.zeros_like(u[..., :1]), left], axis=-1))

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return the inverse `tanh` of each piece over what was left before it."""
        xp, limits = namespace(y), np.finfo(y.dtype)
        taken = xp.cumsum(xp.abs(y[..., :-1]), axis=-1)
        left = xp.concatenate([xp.ones_like(y[..., :1]), 1.0 - taken], axis=-1)
        return xp.arctanh(xp.clip(y / xp.maximum(left, limits.tiny), limits.eps - 1.0, 1.0 - limits.eps))

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return the sum of the logs of `1 - tanh^2` and of what was left before each piece."""
        later = np.arange(u.shape[-1])[::-1].astype(u.dtype)
        return (log_sech2(u) + later * _log_rest(u)).sum(-1)


def log_sech2(u: Values) -> Values:
    """Return `log(1 - tanh(u)^2)` without loss where `tanh` is all but one."""
    return 2.0 * (math.log(2.0) - u - softplus(-2.0 * u))


def _log_rest(u: Values) -> Values:
    """Return `log(1 - |tanh u|)`."""
    size = namespace(u).abs(u)
    return math.log(2.0) - 2.0 * size - softplus(-2.0 * size)
