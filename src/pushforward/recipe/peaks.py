"""Peaks of a density: the walks that find them, where their tops are, how wide and how high, each once."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.host import hessians, in_tiles, on_device
from pushforward.probing import evaluate
from pushforward.recipe.table import Dimensions, Search


class Peaks(NamedTuple):
    """Distinct places where uphill walks ended, best first, with the local scale of each coordinate."""

    points: Float[np.ndarray, "k dim"]
    choleskys: Float[np.ndarray, "k dim dim"]
    log_densities: Float[np.ndarray, " k"]

    @property
    def log_masses(self) -> Float[np.ndarray, " k"]:
        """Laplace's, but for the same constant: `log q + log det scale`."""
        return self.log_densities + np.log(np.diagonal(self.choleskys, axis1=1, axis2=2)).sum(1)

    def rows(self, which: np.ndarray | list[int]) -> "Peaks":
        """Return some of the peaks."""
        return Peaks(*(each[which] for each in self))

    def frame(self) -> Frame:
        """Return the frame in which the normal law of the first peak's curvature is standard."""
        cholesky = self.choleskys[0]
        scale = np.linalg.norm(cholesky, axis=1)
        zero = np.zeros(len(scale))
        return Frame(*map(on_device, (self.points[0], scale, zero, zero, cholesky / scale[:, None])))


def that_matter(peaks: Peaks, numbers: Search) -> Peaks:
    """Leave out peaks whose Laplace mass is next to nothing."""
    window = numbers.mass_window + peaks.points.shape[1]
    return peaks.rows(peaks.log_masses > peaks.log_masses.max() - window)


def joined(peaks: Peaks, more: Peaks, numbers: Search) -> Peaks:
    """Return the peaks of both, the highest first, each once."""
    both = Peaks(*(np.concatenate(each) for each in zip(peaks, more, strict=True)))
    both = that_matter(both.rows(once_each(both, numbers)), numbers)
    return both.rows(foremost(both.points, both.log_densities, numbers.most_peaks, numbers))


def foremost(points: np.ndarray, values: np.ndarray, most: int, numbers: Search) -> list[int]:
    """Return at most so many points: the highest, and among these some of every kind.

    Where coordinates have wells of their own there are very many peaks, and the highest may all be alike in
    a coordinate, whose other well would be lost. So up to half are the highest of those in which a coordinate
    is unlike what it is at any before.
    """
    order = [int(i) for i in np.argsort(-values)]
    if len(order) <= most:
        return order
    spread = np.std(points, axis=0) + 1e-12
    kept = order[:1]
    for i in order[1:]:
        nearest = np.min(np.abs(points[kept] - points[i]), axis=0)
        if len(kept) < most // 2 and np.any(nearest > numbers.unusual * spread):
            kept.append(i)
    rest = [i for i in order if i not in set(kept)]
    return sorted([*kept, *rest[: most - len(kept)]], key=order.index)


def once_each(peaks: Peaks, numbers: Search) -> list[int]:
    """Return the highest point of each peak: those within a part of a deviation of it are the same."""
    kept: list[int] = []
    for i in np.argsort(-peaks.log_densities):
        apart = [np.linalg.solve(peaks.choleskys[j], peaks.points[i] - peaks.points[j]) for j in kept]
        if all(np.linalg.norm(each) > numbers.same_peak for each in apart):
            kept.append(int(i))
    return kept


def to_the_top(
    target: Target, points: np.ndarray, values: np.ndarray, numbers: Search, *, dear: bool = False
) -> tuple[Float[np.ndarray, "k dim"], Float[np.ndarray, " k"]]:
    """Take Newton's steps from each point as far as they lead upwards; return where they end, and how high.

    Walks that end at different places of one bent ridge look like many peaks, all lower than there is one.
    Where the curvature is `dear`, it is looked at once, at the beginning.
    """
    k, dim = points.shape
    lengths = np.asarray(numbers.newton_lengths)
    slopes = evaluate(target, points)[1].astype(np.float64)
    inverse = None
    for _ in range(numbers.newton_steps_many if dear else numbers.newton_steps):
        if inverse is None or not dear:
            inverse = _inverses(hessians(target, points, numbers.hessians))
        steps = np.einsum("kij,kj->ki", inverse, np.nan_to_num(slopes, posinf=0.0, neginf=0.0))
        with np.errstate(invalid="ignore"):
            gains = 0.5 * np.sum(np.nan_to_num(steps * slopes, posinf=0.0, neginf=0.0), axis=1)
        if not (gains > numbers.newton_gain).any():
            break
        tried = points + lengths[:, None, None] * steps
        found, there = (
            each.reshape(len(lengths), k, -1) for each in evaluate(target, tried.reshape(-1, dim))
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


def curvature_scales(
    target: Target, points: np.ndarray, numbers: Search, spread: np.ndarray | None = None
) -> np.ndarray:
    """Return at each point a factor of the inverse curvature; `spread`: how far apart points lie."""
    apart = np.std(points, axis=0) + 1e-12 if spread is None else spread
    return np.stack([_scale(h, apart) for h in hessians(target, points, numbers.hessians)])


def _scale(hessian: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return a Cholesky factor of the inverse curvature; flat or rising directions get a wide guess."""
    dim = len(hessian)
    if not np.all(np.isfinite(hessian)):
        return np.diag(np.maximum(spread, 1e-6))
    values, vectors = np.linalg.eigh(-0.5 * (hessian + hessian.T))
    # Along a ridge the curvature is rounding noise; how far apart the peaks lie says more. Only there;
    # and where all lie within the narrowest deviation, there is no ridge, and how far apart is rounding.
    ridge = values <= 1e-6 * values.max()
    narrowest = values.max() ** -0.5 if values.max() > 0 else 1e-6
    widest = 2.0 * spread.max() if spread.max() > narrowest else np.inf
    floor = np.where(ridge, max(1e-8 * values.max(), widest**-2, 1e-20), 1e-20)
    covariance = (vectors / np.maximum(values, floor)) @ vectors.T
    return np.linalg.cholesky(covariance + 1e-9 * np.trace(covariance) / dim * np.eye(dim))


class Walks(NamedTuple):
    """Where walks are, how high, and the steps with which they would go on."""

    points: Float[np.ndarray, "n dim"]
    values: Float[np.ndarray, " n"]
    steps: Float[np.ndarray, "n dim"]


def climb_from(target: Target, x: np.ndarray, step: np.ndarray, num_steps: int, numbers: Search) -> Walks:
    """Return where walks from `x` lead in so many steps, first ones of that length.

    Each coordinate has a step of its own, which grows while its slope keeps its sign (RPROP).
    """
    dim, count = x.shape[1], np.asarray(num_steps, np.int32)
    begin = np.stack([x, np.broadcast_to(step, x.shape)], axis=1)
    found = in_tiles(lambda each: _climb(target, each, count, numbers), begin, numbers.num_walks)
    return Walks(found[:, :dim], found[:, -1], found[:, dim:-1])


@eqx.filter_jit
def _climb(
    target: Target, begin: Float[Array, "n 2 dim"], num_steps: Int[Array | np.ndarray, ""], numbers: Search
) -> Float[Array, "n _out"]:
    x, step = begin[:, 0], begin[:, 1]
    value_and_slope = jax.vmap(jax.value_and_grad(target.log_density))

    def tidy(value, slope):
        return jnp.where(jnp.isnan(value), -jnp.inf, value), jnp.where(jnp.isfinite(slope), slope, 0.0)

    def body(_, carry):
        x, value, slope, step = carry
        new = x + step * jnp.sign(slope)
        new_value, new_slope = tidy(*value_and_slope(new))
        better = (new_value >= value)[:, None]
        # A worse point is not taken and all its steps shrink; a better one adapts by sign.
        turned = new_slope * slope < 0
        factor = jnp.where(turned, numbers.shrink, numbers.grow)
        step = step * jnp.where(better, factor, numbers.shrink)
        keep = (jnp.where(better, new, x), jnp.where(better[:, 0], new_value, value))
        return (*keep, jnp.where(better, new_slope, slope), step)

    value, slope = tidy(*value_and_slope(x))
    x, value, _, steps = jax.lax.fori_loop(0, num_steps, body, (x, value, slope, step))
    return jnp.concatenate([x, steps, value[:, None]], axis=1)


def tops_of(target: Target, walks: Walks, numbers: Search, dims: Dimensions) -> Peaks | None:
    """Return the peaks that walks have come to, each once; `None` if no walk is anywhere."""
    many = target.dim > dims.many
    usable = np.isfinite(walks.values) & np.isfinite(walks.points).all(axis=1)
    if not usable.any():
        return None
    order = np.flatnonzero(usable)[np.argsort(-walks.values[usable])]
    x, value = walks.points[order], walks.values[order]
    # Walks on one peak end within rounding of each other, or along its ridge where it has one.
    spread = np.std(x, axis=0) + 1e-12
    apart: list[int] = []
    for i in range(len(x)):
        known = x[apart]
        if np.all(np.max(np.abs(x[i] - known) / (1e-3 * spread + 1e-4 * np.abs(known) + 1e-8), axis=1) > 1):
            apart.append(i)
    limit = numbers.most_peaks_many if many else numbers.most_peaks
    kept = [apart[i] for i in foremost(x[apart], value[apart], limit, numbers)]
    points, value = to_the_top(target, x[kept], value[kept], numbers, dear=many)
    peaks = Peaks(points, curvature_scales(target, points, numbers, spread), value)
    return that_matter(peaks.rows(once_each(peaks, numbers)), numbers)


def far_starts(
    rng: np.random.Generator, num_starts: int, dim: int, numbers: Search
) -> tuple[Float[np.ndarray, "n dim"], Float[np.ndarray, "n 1"]]:
    """Return points at all distances from the origin, and first steps in proportion."""
    radius = between(rng, numbers.radii, (num_starts, 1))
    return radius * rng.standard_normal((num_starts, dim)), numbers.first_step * radius


def between(rng: np.random.Generator, ends: tuple[float, float], shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers between two, even in their logarithms."""
    low, high = np.log(ends)
    return np.exp(rng.uniform(low, high, shape))
