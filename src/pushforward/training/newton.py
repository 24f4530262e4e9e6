"""The last stretch uphill: Newton's steps, which follow a bent ridge that coordinates on their own cannot."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.one_by_one import OneByOne
from pushforward.training.probing import evaluate

MOST_STEPS, FEW_STEPS = 40, 5
"""Steps at most, and where the curvature is dear: there it is looked at once, at the beginning."""

LENGTHS = 4.0 ** -np.arange(5)
"""Shares of a step that are tried at once: where the ridge bends, a whole one leaves it."""

ENOUGH = 0.01
"""Nats that a step must promise to be taken."""


@eqx.filter_jit
def hessians(target: Target, x: Float[Array, "k dim"]) -> Float[Array, "k dim dim"]:
    """Return the matrix of second derivatives of the log density at each point."""
    if isinstance(target, OneByOne):
        return jax.lax.map(target.hessian, x)
    return jax.lax.map(jax.hessian(target.log_density), x, batch_size=8)


def to_the_top(
    target: Target, points: Float[np.ndarray, "k dim"], values: Float[np.ndarray, " k"], *, dear: bool = False
) -> tuple[Float[np.ndarray, "k dim"], Float[np.ndarray, " k"]]:
    """Take steps from each point as far as they lead upwards; return where they end, and how high.

    Walks that end at different places of one bent ridge look like many hills, all lower than there is one.
    """
    k, dim = points.shape
    slopes = evaluate(target, points)[1].astype(np.float64)
    inverse = None
    for _ in range(FEW_STEPS if dear else MOST_STEPS):
        if inverse is None or not dear:
            inverse = _inverses(np.asarray(hessians(target, jnp.asarray(points)), np.float64))
        steps = np.einsum("kij,kj->ki", inverse, np.nan_to_num(slopes, posinf=0.0, neginf=0.0))
        if not (0.5 * np.sum(steps * slopes, axis=1) > ENOUGH).any():
            break
        tried = points + LENGTHS[:, None, None] * steps
        found, there = (
            each.reshape(len(LENGTHS), k, -1) for each in evaluate(target, tried.reshape(-1, dim))
        )
        usable = np.isfinite(there).all(axis=2) & np.isfinite(found[:, :, 0])
        heights = np.where(usable, found[:, :, 0].astype(np.float64), -np.inf)
        best, every = heights.argmax(axis=0), np.arange(k)
        better = heights[best, every] > values
        if not better.any():
            break
        points = np.where(better[:, None], tried[best, every], points)
        slopes = np.where(better[:, None], there[best, every], slopes)
        values = np.where(better, heights[best, every], values)
    return points, values


def _inverses(hessians: Float[np.ndarray, "k dim dim"]) -> Float[np.ndarray, "k dim dim"]:
    """Return what a slope is multiplied by: the inverse curvature, uphill also where that has the wrong sign.

    Coordinates are measured in units of their own curvature first: they may differ by many orders.
    """
    known = np.isfinite(hessians).all(axis=(1, 2), keepdims=True)
    h = np.where(known, hessians, -np.eye(hessians.shape[1]))
    unit = 1.0 / np.sqrt(np.maximum(np.abs(np.diagonal(h, axis1=1, axis2=2)), 1e-30))
    sizes, vectors = np.linalg.eigh(-0.5 * (h + h.swapaxes(1, 2)) * unit[:, :, None] * unit[:, None, :])
    sizes = np.maximum(np.abs(sizes), 1e-6 * np.abs(sizes).max(axis=1, keepdims=True) + 1e-30)
    turned = unit[:, :, None] * vectors
    return known * ((turned / sizes[:, None, :]) @ turned.swapaxes(1, 2))
