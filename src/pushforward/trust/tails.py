"""Tails that the draws leave out: walks outward along each coordinate, on the ridge of the density."""

import numpy as np
from jaxtyping import Float

from pushforward.base import Target
from pushforward.host import hessians
from pushforward.preflight.declaring import coordinate_names
from pushforward.probing import evaluate
from pushforward.recipe.table import Search
from pushforward.trust.line import Line
from pushforward.trust.settings import LIMITS


def tails_lines(
    rng: np.random.Generator, target: Target, draws: Float[np.ndarray, "n dim"], limits=LIMITS
) -> list[Line]:
    """Return the line on mass beyond the draws, where there are enough of them and curvature is affordable.

    A walk follows a coordinate from the middle of the draws outwards, at the mode of all others given it.
    There, height and curvature give its marginal density up to a constant (Laplace). The walk counts if that
    agrees with the draws where these are many. Then it says how much mass lies beyond the outermost draws.
    """
    n, dim = draws.shape
    if n < limits.tail_draws or not 1 < dim <= limits.tail_dim:
        return []
    x = np.asarray(draws, np.float64)
    ways = [(i, side) for i in range(dim) for side in (-1.0, 1.0) for _ in range(limits.tail_walks)]
    axis, side = np.array([i for i, _ in ways]), np.array([s for _, s in ways])
    # Walks pass the places within which these shares of the draws lie, and go on.
    first, second, third = limits.tail_marks
    shares = np.append(np.linspace(first, second, 5), 1.0 - np.geomspace(1.0 - second, 1.0 - third, 5)[1:])
    grown = np.cumsum(1.25 ** np.arange(1, limits.tail_steps + 1))
    t, start = np.empty((len(ways), len(shares) + len(grown))), np.empty((len(ways), dim))
    for row, (i, s) in enumerate(ways):
        marks = np.quantile(s * x[:, i], shares)
        t[row] = np.append(marks, marks[-1] + (marks[-1] - marks[-2]) * grown)
        start[row] = x[rng.choice(np.argsort(np.abs(s * x[:, i] - marks[0]))[:50])]
    logs = _followed(target, start, axis, side, t)
    with np.errstate(all="ignore"):
        # The share of the draws between the first two marks is what the walk says it is, but for a constant.
        inner, between, beyond = (_integral(logs[:, a:b], t[:, a:b]) for a, b in ((0, 5), (4, 9), (8, None)))
        ratio = (between / inner) / ((third - second) / (second - first))
        mass = beyond / inner * (second - first)
    alike = (ratio > 1.0 / limits.tail_alike) & (ratio < limits.tail_alike) & np.isfinite(mass)
    # Walks from different draws may follow different branches: the least says what is sure.
    mass = np.where(alike, mass, 0.0).reshape(-1, limits.tail_walks).min(axis=1)
    worst, followed = int(np.argmax(mass)), int(alike.reshape(-1, limits.tail_walks).all(axis=1).sum())
    missed, (i, s) = float(mass[worst]), ways[worst * limits.tail_walks]
    name = coordinate_names(target)[i]
    words = f"{followed} of {2 * dim} ways outward could be followed."
    if missed > limits.tail_mass:
        end = s * t[worst * limits.tail_walks, len(shares) - 1]
        words += f" Beyond {name} = {end:.4g} lies about {missed:.1%} of the mass, and "
        words += f"{1 - third:.1%} of the draws."
    return [
        Line(
            name="tails",
            title="Mass beyond the draws",
            statistic=missed,
            measure=f"share beyond the outermost {1.0 - third:.1%} of the draws of a coordinate",
            null=f"at most {limits.tail_mass:.0%}",
            breached=missed > limits.tail_mass,
            grave=missed > limits.hidden_mass,
            found=words,
            advice="The sampler's tail is too short there: a reparametrisation, more steps, or NUTS.",
            details={"ways": 2 * dim, "followed": followed, "missed": missed},
        )
    ]


def _integral(logs: np.ndarray, t: np.ndarray) -> Float[np.ndarray, " ways"]:
    """Return integrals of densities that are exponentials between neighbouring places."""
    density = np.exp(logs)
    rise = np.diff(logs, axis=1)
    flat = np.abs(rise) < 1e-6
    mean = np.where(flat, density[:, 1:], np.diff(density, axis=1) / np.where(flat, 1.0, rise))
    return np.sum(mean * np.diff(t, axis=1), axis=1)


def _followed(
    target: Target, x: np.ndarray, axis: np.ndarray, side: np.ndarray, t: np.ndarray
) -> Float[np.ndarray, "ways steps"]:
    """Return log marginal densities along walks, by Laplace at the mode of all other coordinates."""
    rows, found, before = np.arange(len(x)), [], None
    for k in range(t.shape[1]):
        # Where two places are known, the next is in line with them.
        slope = 0.0 if before is None else (x - before) / (t[:, k - 1] - t[:, k - 2])[:, None]
        before, x = x if k else None, x + (slope * (t[:, k] - t[:, k - 1])[:, None] if k > 1 else 0.0)
        x = np.array(x)
        x[rows, axis] = side * t[:, k]
        x, logs = _relaxed(target, x, axis, steps=8 if k == 0 else 3)
        found.append(logs)
    logs = np.stack(found, axis=1)
    return logs - logs[:, :1]


def _relaxed(target: Target, x: np.ndarray, axis: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Climb by Newton's steps in all coordinates but one; return where to, and the Laplace mass there."""
    rows, dim = np.arange(len(x)), x.shape[1]
    shares = np.array([0.0, 1.0, 0.3, 0.05])[:, None, None]
    for _ in range(steps):
        sizes, vectors = np.linalg.eigh(_curvature(target, x, axis))
        slopes = np.nan_to_num(evaluate(target, x)[1].astype(np.float64), posinf=0.0, neginf=0.0)
        slopes[rows, axis] = 0.0
        sizes = np.maximum(np.abs(sizes), 1e-7 * np.abs(sizes).max(axis=1, keepdims=True) + 1e-30)
        move = np.einsum("nij,nj,nkj,nk->ni", vectors, 1.0 / sizes, vectors, slopes)
        tried = x + shares * move
        heights = evaluate(target, tried.reshape(-1, dim))[0].astype(np.float64).reshape(len(shares), -1)
        x = tried[np.where(np.isfinite(heights), heights, -np.inf).argmax(axis=0), rows]
    sizes, logs = np.linalg.eigvalsh(_curvature(target, x, axis)), evaluate(target, x)[0].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return x, logs - 0.5 * np.log(np.where(sizes > 0, sizes, np.nan)).sum(axis=1)


def _curvature(target: Target, x: np.ndarray, axis: np.ndarray) -> Float[np.ndarray, "n dim dim"]:
    """Return minus the second derivatives in all coordinates but one, which stands alone with a one."""
    curve, rows = -hessians(target, x, Search().hessians), np.arange(len(x))
    curve = np.where(np.isfinite(curve).all(axis=(1, 2), keepdims=True), curve, np.eye(x.shape[1]))
    curve = 0.5 * (curve + curve.swapaxes(1, 2))
    curve[rows, axis, :] = curve[rows, :, axis] = 0.0
    curve[rows, axis, axis] = 1.0
    return curve
