"""Peaks that no valley parts are one basin; every point belongs to the basin of its likeliest peak."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.host import component_logs, into, on_device
from pushforward.latents import NormalMixture
from pushforward.recipe.peaks import Peaks
from pushforward.recipe.table import Search
from pushforward.trust.settings import LIMITS

MAX_MODES = Search().most_peaks

LINES = LIMITS.nearest * MAX_MODES  # lines between peaks looked at in one go, so that one program serves all


@dataclass(frozen=True)
class Basins:
    """Peaks, which of them belong together, and a law that covers them all."""

    peaks: Peaks
    group: Int[np.ndarray, " k"]  # the basin of each peak, numbered from 0
    owner: Int[np.ndarray, " m"]  # the basin of each component of `start` but the last
    frame: Frame
    start: NormalMixture  # in the frame: wide normals about peaks of every basin, and one over all of them

    @property
    def count(self) -> int:
        """How many basins there are."""
        return int(self.group.max()) + 1

    @property
    def complete(self) -> bool:
        """Whether the search ended well before its limit: else there may be any number of other basins."""
        return self.count <= LIMITS.weighable * MAX_MODES

    def of(self, x: Float[np.ndarray, "n dim"]) -> Int[np.ndarray, " n"]:
        """Return the basin of each point: of its likeliest component but the wide one, which owns none."""
        return self.owner[
            component_logs(self.start, into(self.frame, np.asarray(x, np.float64)))[:, :-1].argmax(axis=1)
        ]


def find_basins(target: Target, peaks: Peaks) -> Basins:
    """Join the peaks between which the density does not dip, and build the law over them."""
    k = len(peaks.points)
    first, second = np.triu_indices(k, 1)
    linked = np.eye(k, dtype=bool)
    lowest = _between(target, peaks.points[first], peaks.points[second])
    joined = lowest >= np.minimum(peaks.log_densities[first], peaks.log_densities[second]) - LIMITS.valley
    linked[first[joined], second[joined]] = linked[second[joined], first[joined]] = True
    # Every peak that can be reached, and basins numbered in the order of their first peaks.
    reached = np.linalg.matrix_power(linked, k)
    group = np.unique(np.argmax(reached, axis=1), return_inverse=True)[1]
    # The first peak of every basin, then others, up to the limit: more cost more than they cover.
    heads = np.unique(group, return_index=True)[1]
    limit = max(MAX_MODES if target.dim <= LIMITS.low_dim else LIMITS.few_peaks, len(heads))
    chosen = np.append(heads, np.setdiff1d(np.arange(k), heads))[:limit]
    return Basins(peaks, group, group[chosen], *_start(peaks.rows(chosen)))


def unlinked(
    target: Target, peaks: Peaks, x: Float[np.ndarray, "n dim"], value: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Return which points are parted by a valley from all of the peaks nearest to them.

    Points next to one that was looked at are not looked at themselves: of each hill, one is enough.
    """
    usable = np.isfinite(value) & np.isfinite(x).all(axis=1)
    # Quantiles, since a walk may have run away.
    low, high = np.quantile(np.vstack([peaks.points, x[usable]]), [0.05, 0.95], axis=0)
    spread = high - low + 1e-12
    kept: list[int] = []
    for i in np.flatnonzero(usable):
        if len(kept) < MAX_MODES and not _near(x[i], np.vstack([peaks.points, x[kept]]), spread).any():
            kept.append(int(i))
    found = np.zeros(len(x), bool)
    if not kept:
        return found
    rows = np.resize(kept, MAX_MODES)
    distance = np.sum(((x[rows, None] - peaks.points[None]) / spread) ** 2, axis=2)
    nearest = np.argsort(distance, axis=1)[:, np.arange(LIMITS.nearest) % len(peaks.points)]
    lowest = _between(target, np.repeat(x[rows], LIMITS.nearest, axis=0), peaks.points[nearest.ravel()])
    ends = np.minimum(value[rows, None], peaks.log_densities[nearest])
    found[rows] = ~(lowest.reshape(nearest.shape) >= ends - LIMITS.valley).any(axis=1)
    return found


def _between(target: Target, one: np.ndarray, other: np.ndarray) -> Float[np.ndarray, " n"]:
    """Return the lowest log density on the way from each row of `one` to that of `other`."""
    shares = np.linspace(0.0, 1.0, LIMITS.valley_points + 2)[1:-1, None]
    found = []
    for start in range(0, len(one), LINES):
        rows = np.minimum(np.arange(start, start + LINES), len(one) - 1)
        lines = (1.0 - shares) * one[rows, None] + shares * other[rows, None]
        found.append(np.asarray(_lowest(target, on_device(lines)), np.float64))
    return np.concatenate([*found, np.zeros(0)])[: len(one)]


def join(one: Peaks, other: Peaks) -> Peaks:
    """Return the peaks of both, those found twice once."""
    spread = np.std(np.vstack([one.points, other.points]), axis=0) + 1e-12
    known = np.array([_near(point, one.points, spread).any() for point in other.points])
    return Peaks(*(np.concatenate([a, b[~known]])[:MAX_MODES] for a, b in zip(one, other, strict=True)))


def _near(point: np.ndarray, others: np.ndarray, spread: np.ndarray) -> Bool[np.ndarray, " n"]:
    """Return which of the others are the point, but for the rounding of a walk."""
    return np.all(np.abs(others - point) < 1e-2 * spread + 1e-3 * np.abs(point) + 1e-8, axis=1)


def _start(peaks: Peaks) -> tuple[Frame, NormalMixture]:
    points, factors, mass = peaks.points, peaks.choleskys, peaks.log_masses
    centre = points.mean(axis=0)
    scale = np.sqrt(np.mean(np.sum(factors**2, axis=2), axis=0) + np.var(points, axis=0))
    # A curvature at a point is a poor guess of a mass: no peak gets less than e^-4 of the largest.
    weights = np.exp(np.clip(mass - mass.max(), -4.0, 0.0))
    weights = np.append((1.0 - LIMITS.wide_share) * weights / weights.sum(), LIMITS.wide_share)
    dim = len(centre)
    means = np.vstack([(points - centre) / scale, np.zeros(dim)])
    choleskys = np.concatenate([LIMITS.wider * factors / scale[:, None], LIMITS.widest * np.eye(dim)[None]])
    straight = (centre, scale, np.zeros(dim), np.zeros(dim), np.eye(dim))
    return Frame(*map(on_device, straight)), NormalMixture(*map(on_device, (weights, means, choleskys)))


@eqx.filter_jit
def _lowest(target: Target, points: Float[Array, "pairs m dim"]) -> Float[Array, " pairs"]:
    return jax.lax.map(lambda line: jnp.min(jax.vmap(target.log_density)(line)), points)
