"""From draws to a frame: centre, scale, bend the heavy tails, whiten."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pushforward.frame import Frame, unbent

BEND_FROM = 0.3
"""Lighter bends are left straight: they are within what the network does anyway."""

MANY_FROM = 4
"""Dimensions from which on correlations are looked at for chance."""


def frame_from_draws(draws: Float[Array, "n dim"], *, bend: bool = True) -> Frame:
    """Return the frame in which the draws are centred and white.

    A normal has `r = (q97.7 - q2.3) / (q84 - q16) = 2`; for `sinh(b u)` it is `2 cosh b`, which gives the
    bend of each coordinate. Quantiles, not moments: the moments of a heavy tail are noise.
    """
    x = np.asarray(draws, np.float64)
    q02, q16, q50, q84, q98 = np.quantile(x, [0.0228, 0.1587, 0.5, 0.8413, 0.9772], axis=0)
    width = np.maximum(q84 - q16, 1e-30)
    angle = np.arccosh(np.maximum((q98 - q02) / width / 2.0, 1.0))
    bends = np.where((angle > BEND_FROM) & bend, angle, 0.0)
    # sinh(b)/b is one at b = 0: the scale is such that one unit of v is one unit of the middle.
    scale = 0.5 * width / np.where(bends > 0, np.sinh(bends) / np.maximum(bends, 1e-9), 1.0)
    v = np.asarray(unbent(jnp.asarray((x - q50) / scale), jnp.asarray(bends)))
    covariance = _without_chance(np.cov(v, rowvar=False).reshape(v.shape[1], v.shape[1]), len(v))
    ridge = 1e-8 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    return Frame(
        centre=jnp.asarray(q50, float),
        scale=jnp.asarray(scale, float),
        bend=jnp.asarray(bends, float),
        shift=jnp.asarray(v.mean(0), float),
        matrix=jnp.asarray(np.linalg.cholesky(covariance + ridge), float),
    )


def _without_chance(covariance: np.ndarray, num_draws: int) -> np.ndarray:
    """Return the covariance with correlations that may be chance set to zero, if that changes it little.

    In many dimensions there are so many of them that whitening by their noise smears what was sharp.
    """
    dim = len(covariance)
    if dim < MANY_FROM:
        return covariance
    scale = np.sqrt(np.diag(covariance))
    # Draws of one population after another are worth a fraction of as many independent ones.
    chance = np.abs(covariance / np.outer(scale, scale)) < 3.0 / np.sqrt(num_draws / 4)
    sparse = np.where(chance, 0.0, covariance)
    try:
        factor = np.linalg.inv(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        return covariance
    change = np.linalg.eigvalsh(factor @ sparse @ factor.T)
    return sparse if change[0] > 0.8 and change[-1] < 1.25 else covariance
