"""Where is the mass? Uphill walks from starts over many scales, and the curvature where they end.

Nothing is assumed of the target's place or units: starts are spread over six orders of magnitude and
each walk adapts its step in every coordinate (RPROP), so that shift and scale cost only logarithms.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.training.newton import hessians, to_the_top
from pushforward.training.peaks import MAX_MODES, Peaks, first_of_each, foremost, joined, that_matter
from pushforward.training.surprises import surprising_places

NUM_STARTS, FEW_STARTS, FEW_FROM = 512, 64, 101
"""Walks; and fewer from so many dimensions on, where each is dear and hills are seldom many."""

RADII = (1e-2, 1e4)
"""Starts lie at log-uniform distances from the origin; the walks themselves go further."""

GROW, SHRINK = 1.3, 0.5

POLISHED_FROM = 4
"""Dimensions from which on walks end by Newton's steps."""

HOPS, HOP_STEPS, HOP_DEVIATIONS = 10, 150, (2.0, 30.0)
"""Rounds at most of walks that begin where the peaks found so far do not explain what is there, and around
them; their length, and how far off they begin. From afar a narrow hill is hidden behind a wide one, however
high it is."""


@eqx.filter_jit
def uphill(
    target: Target, x: Float[Array, "n dim"], step: Float[Array, "n #dim"], num_steps: int
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Float[Array, "n dim"]]:
    """Return where walks from `x` end, how high, and the steps with which they would go on.

    Each coordinate has a step of its own, which grows while its slope keeps its sign.
    """
    value_and_slope = jax.vmap(jax.value_and_grad(target.log_density))

    def tidy(value, slope):
        return jnp.where(jnp.isnan(value), -jnp.inf, value), jnp.where(jnp.isfinite(slope), slope, 0.0)

    def body(carry, _):
        x, value, slope, step = carry
        new = x + step * jnp.sign(slope)
        new_value, new_slope = tidy(*value_and_slope(new))
        better = (new_value >= value)[:, None]
        # A worse point is not taken and all its steps shrink; a better one adapts by sign.
        turned = new_slope * slope < 0
        step = step * jnp.where(better, jnp.where(turned, SHRINK, GROW), SHRINK)
        keep = (jnp.where(better, new, x), jnp.where(better[:, 0], new_value, value))
        return (*keep, jnp.where(better, new_slope, slope), step), None

    value, slope = tidy(*value_and_slope(x))
    steps = jnp.broadcast_to(step, x.shape)
    (x, value, _, steps), _ = jax.lax.scan(body, (x, value, slope, steps), None, length=num_steps)
    return x, value, steps


def scout(
    key: Key[Array, ""], target: Target, *, num_starts: int | None = None, num_steps: int = 300
) -> Peaks:
    """Find the places where mass may lie, from the log density alone."""
    num_starts = num_starts or (NUM_STARTS if target.dim < FEW_FROM else FEW_STARTS)
    peaks = climb(target, *far_starts(key, num_starts, target.dim), num_steps=num_steps)
    if peaks is None:
        raise ValueError(
            f"`target`: the log density of {target.name!r} was not finite at any of {num_starts} starts "
            f"between {RADII[0]:g} and {RADII[1]:g} from the origin. Check its support, or shift it."
        )
    if POLISHED_FROM <= target.dim < FEW_FROM:
        quiet = 0
        for i in range(HOPS):
            known, most = len(peaks.points), peaks.log_masses.max()
            starts = next_starts(jax.random.fold_in(key, i), target, num_starts, peaks)
            more = climb(target, *starts, num_steps=HOP_STEPS)
            peaks = peaks if more is None else joined(peaks, more)
            # Hills may be fewer than before where one was found next to which others do not matter.
            news = len(peaks.points) > known or peaks.log_masses.max() > most + 1.0
            quiet = 0 if news else quiet + 1
            # Where there are several hills, there may be one that a single round has not come upon.
            if quiet >= (1 if known == 1 else 2):
                break
    return peaks


def far_starts(
    key: Key[Array, ""], num_starts: int, dim: int
) -> tuple[Float[Array, "n dim"], Float[Array, "n 1"]]:
    """Return points at all distances from the origin, and first steps of a tenth of the distance."""
    key_direction, key_radius = jax.random.split(key)
    low, high = np.log(RADII[0]), np.log(RADII[1])
    radius = jnp.exp(jax.random.uniform(key_radius, (num_starts, 1), minval=low, maxval=high))
    return radius * jax.random.normal(key_direction, (num_starts, dim)), 0.1 * radius


def near_starts(
    key: Key[Array, ""], num_starts: int, peaks: Peaks
) -> tuple[Float[Array, "n dim"], Float[Array, "n dim"]]:
    """Return points around peaks, some deviations off, and first steps of a tenth of the way."""
    key_peak, key_direction, key_radius = jax.random.split(key, 3)
    k, dim = peaks.points.shape
    which = jax.random.randint(key_peak, (num_starts,), 0, k)
    factors = jnp.asarray(peaks.choleskys, float)[which]
    low, high = np.log(HOP_DEVIATIONS)
    radius = jnp.exp(jax.random.uniform(key_radius, (num_starts, 1), minval=low, maxval=high))
    away = jnp.einsum("nij,nj->ni", factors, jax.random.normal(key_direction, (num_starts, dim)))
    step = 0.1 * radius * jnp.linalg.norm(factors, axis=2)
    return jnp.asarray(peaks.points, float)[which] + radius * away, step


def next_starts(
    key: Key[Array, ""], target: Target, num_starts: int, peaks: Peaks
) -> tuple[Float[Array, "n dim"], Float[Array, "n dim"]]:
    """Return places that known peaks do not explain, at most half of all, and points around the peaks."""
    key_near, key_places = jax.random.split(key)
    x, step = near_starts(key_near, num_starts, peaks)
    places, width = surprising_places(key_places, target, peaks, num_starts // 2)
    return x.at[: len(places)].set(places), step.at[: len(places)].set(width)


def climb(
    target: Target, starts: Float[Array, "n dim"], step: Float[Array, "n #dim"], *, num_steps: int = 300
) -> Peaks | None:
    """Return the peaks above `starts`, with first steps of that length; `None` if no start is usable."""
    x, value, _ = (np.asarray(a, np.float64) for a in uphill(target, starts, step, num_steps))
    usable = np.isfinite(value) & np.all(np.isfinite(x), axis=1)
    if not usable.any():
        return None
    x, value = x[usable], value[usable]
    order = np.argsort(-value)
    return _distinct(target, x[order], value[order])


def _distinct(target: Target, x: np.ndarray, value: np.ndarray) -> Peaks:
    """Keep one walk of each hill; a hill's size is its Laplace mass, `log q + log det scale`."""
    dim = target.dim
    # Walks on one hill end within rounding of each other, or along its ridge where it has one.
    limit = MAX_MODES if dim <= 100 else 4
    spread = np.std(x, axis=0) + 1e-12
    apart: list[int] = []
    for i in range(len(x)):
        known = x[apart]
        if np.all(np.max(np.abs(x[i] - known) / (1e-3 * spread + 1e-4 * np.abs(known) + 1e-8), axis=1) > 1):
            apart.append(i)
    kept = [apart[i] for i in foremost(x[apart], value[apart], limit)]
    points, value = x[kept], value[kept]
    polished = dim >= POLISHED_FROM
    if polished:
        points, value = to_the_top(target, points, value, dear=dim >= FEW_FROM)
    choleskys = curvature_scales(target, points, spread)
    if polished:
        once = first_of_each(points, choleskys, value)
        points, value, choleskys = points[once], value[once], choleskys[once]
    return that_matter(Peaks(points, choleskys, value))


def curvature_scales(target: Target, points: np.ndarray, spread: np.ndarray | None = None) -> np.ndarray:
    """Return at each point a factor of the inverse curvature; `spread`: how far apart points lie."""
    found = np.asarray(hessians(target, jnp.asarray(points)), np.float64)
    apart = np.std(points, axis=0) + 1e-12 if spread is None else spread
    return np.stack([_scale(h, apart) for h in found])


def _scale(hessian: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return a Cholesky factor of the inverse curvature; flat or rising directions get a wide guess."""
    dim = len(hessian)
    if not np.all(np.isfinite(hessian)):
        return np.diag(np.maximum(spread, 1e-6))
    values, vectors = np.linalg.eigh(-0.5 * (hessian + hessian.T))
    # Along a ridge the curvature is rounding noise; how far apart the peaks lie says more.
    widest = 2.0 * spread.max() if spread.max() > 1e-6 else np.inf
    floor = max(1e-8 * values.max(), widest**-2, 1e-20)
    covariance = (vectors / np.maximum(values, floor)) @ vectors.T
    return np.linalg.cholesky(covariance + 1e-9 * np.trace(covariance) / dim * np.eye(dim))
