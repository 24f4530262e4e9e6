"""Which coordinates are necks: others' widths go by them, as in funnels and in hierarchical models.

The logarithm of a deviation is regressed on the coordinate that it follows. That holds beyond where draws
have been, too: so what was learnt of the middle of a neck serves for its ends.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pushforward.recipe.table import Necks


class Widths(NamedTuple):
    """Widths `exp(offsets + slopes . u)` around `centres + shifts . u`, with slopes for the `necks` only."""

    necks: tuple[int, ...]
    centres: Float[np.ndarray, " dim"]
    offsets: Float[np.ndarray, " dim"]
    slopes: Float[np.ndarray, "dim dim"]
    shifts: Float[np.ndarray, "dim dim"]


def find_necks(u: Float[np.ndarray, "m dim"], numbers: Necks, correlated: int) -> Widths | None:
    """Return the necks of draws with a normal's quantiles, strongest first; none may follow another."""
    num_draws, dim = u.shape
    x = np.clip(u, -numbers.outlier, numbers.outlier)
    found = Widths((), np.zeros(dim), np.zeros(dim), np.zeros((dim, dim)), np.zeros((dim, dim)))
    # Draws of one population after another are worth a fraction of as many independent ones.
    chance = numbers.sure * numbers.log_spread / np.sqrt(num_draws / correlated)
    for _ in range(numbers.most):
        slopes = _regress(_logs(u, x, found), x)
        free = ~np.any(found.slopes != 0.0, axis=1)
        free[list(found.necks)] = False
        slopes[list(found.necks)] = 0.0
        np.fill_diagonal(slopes, 0.0)
        strong = np.where(np.abs(slopes) > max(numbers.least_slope, chance), slopes, 0.0)
        gains = np.where(free, np.sum(strong**2, axis=0), 0.0)
        best = int(np.argmax(gains))
        if gains[best] < numbers.least_gain:
            break
        followed = strong[:, best] != 0.0
        found = found._replace(necks=(*found.necks, best))
        for _ in range(numbers.passes):
            found = _improved(u, x, found, best, followed, numbers)
    usable = all(np.isfinite(each).all() for each in found[1:])
    return found if found.necks and usable else None


def _logs(u: np.ndarray, x: np.ndarray, found: Widths) -> np.ndarray:
    """Return the log of every deviation, over its width: what a width lacks shows in it."""
    away = np.abs(u - found.centres - x @ found.shifts.T)
    return np.log(away + 1e-30) - (found.offsets + x @ found.slopes.T)


def _regress(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the slopes of every column of `y` on each column of `x` alone."""
    x = x - x.mean(0)
    return (y - y.mean(0)).T @ x / np.maximum(np.sum(x * x, axis=0), 1e-30)


def _improved(
    u: np.ndarray, x: np.ndarray, found: Widths, neck: int, followed: np.ndarray, numbers: Necks
) -> Widths:
    """Return widths and centres of those that follow one neck, each estimated with the other as it is.

    Centres by weighted least squares: where a neck is narrow it tells more of them.
    """
    centres, offsets, slopes, shifts = (each.copy() for each in found[1:])
    logs = _logs(u, x, found)[:, followed]
    more = _regress(logs, x[:, [neck]])[:, 0]
    slopes[followed, neck] += more
    offsets[followed] += logs.mean(0) - numbers.log_normal - more * x[:, neck].mean()
    weights = np.exp(-2.0 * (offsets[followed] + x @ slopes[followed].T))
    weights /= weights.sum(0)
    residual = (u - centres - x @ shifts.T)[:, followed]
    middle, means = x[:, neck] @ weights, np.sum(weights * residual, axis=0)
    apart = x[:, [neck]] - middle
    tilt = np.sum(weights * apart * residual, axis=0) / np.sum(weights * apart**2, axis=0)
    shifts[followed, neck] += tilt
    centres[followed] += means - tilt * middle
    return Widths(found.necks, centres, offsets, slopes, shifts)
