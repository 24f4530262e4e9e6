"""Peaks that hold no mass, and the stops on the way up to them that do.

The peak of a hierarchical model may lie in a neck so narrow that next to nothing of the mass is there. On
the way up a walk passes places where a normal law covers far more. As in Pathfinder, each stop is judged by
the evidence lower bound of the normal law that its curvature suggests,

    E[log q(x)] + entropy,    x ~ N(stop, c^2 H^-1),

which is at most `log Z`, and near it where that law holds most of the mass.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.training.necks import NECKS_FROM
from pushforward.training.peaks import Peaks
from pushforward.training.scout import curvature_scales, far_starts, uphill

NUM_WALKS = 64
STRIDE, NUM_STOPS = 15, 20
EARLY = (0, 5, 5, 5)
"""Steps before the first looks, where there may be necks of many coordinates: those draw walks in before they
have gone far."""

SHRINKAGE = (1.0, 0.5, 0.25)
"""Curvature at one point can promise too wide a law: narrower ones are tried too."""

NUM_DRAWS = 32
MAX_KEPT, MAX_PASSES = 16, 16384
CLEARLY = 2.0
"""Nats by which a stop must beat every peak to count: less may be the noise of the bound."""


def with_stops(key: Key[Array, ""], target: Target, peaks: Peaks) -> Peaks:
    """Return the peaks, joined by stops that hold more mass than any peak, less those that hold none.

    `log_densities` are such that a peak's mass, `log_densities + log det choleskys`, is its bound.
    """
    key_starts, key_peaks, key_stops = jax.random.split(key, 3)
    points = _walks(target, *far_starts(key_starts, NUM_WALKS, target.dim))
    # Judging a stop takes its curvature, as many passes as there are coordinates.
    points = points[:: -(-len(points) // max(1, MAX_PASSES // target.dim))]
    stops = _judged(key_stops, target, points, curvature_scales(target, points))
    mine = _judged(key_peaks, target, peaks.points, peaks.choleskys)
    better = np.flatnonzero(stops.log_masses > mine.log_masses.max() + CLEARLY)
    better = better[np.argsort(-stops.log_masses[better])][:MAX_KEPT]
    if better.size == 0:
        return peaks
    both = Peaks(*(np.concatenate([b[better], a]) for a, b in zip(mine, stops, strict=True)))
    near = both.log_masses > both.log_masses.max() - 20.0
    return Peaks(*(each[near] for each in both))


def _walks(target: Target, x: Float[Array, "n dim"], step: Float[Array, "n 1"]) -> np.ndarray:
    """Return all usable points at which walks uphill were seen, one below the other."""
    seen = []
    early = EARLY if target.dim >= NECKS_FROM else ()
    for stride in (*early, *[STRIDE] * NUM_STOPS):
        x, value, step = uphill(target, x, step, stride)
        rows = np.asarray(x, np.float64)
        seen.append(rows[np.isfinite(np.asarray(value)) & np.all(np.isfinite(rows), axis=1)])
    return np.unique(np.concatenate(seen), axis=0)


def _judged(key: Key[Array, ""], target: Target, points: np.ndarray, choleskys: np.ndarray) -> Peaks:
    """Return each point with the shrunk factor of the best bound, and the density that makes it its mass."""
    bounds = np.stack(
        [
            np.asarray(_bounds(target, key, *map(jax.device_put, _single(points, c * choleskys))))
            for c in SHRINKAGE
        ]
    )
    best = bounds.argmax(0)
    choleskys = np.asarray(SHRINKAGE)[best][:, None, None] * choleskys
    log_det = np.log(np.diagonal(choleskys, axis1=1, axis2=2)).sum(1)
    bound = bounds.max(0)
    return Peaks(points, choleskys, np.where(np.isfinite(bound), bound, -np.inf) - log_det)


def _single(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(a, np.float32) for a in arrays)


@eqx.filter_jit
def _bounds(
    target: Target, key: Key[Array, ""], points: Float[Array, "k dim"], choleskys: Float[Array, "k dim dim"]
) -> Float[Array, " k"]:
    """Return the bound of each normal law, less `dim / 2 log(2 pi e)`, by the same draws for all."""
    noise = jax.random.normal(key, (NUM_DRAWS, target.dim))

    def one(law):
        point, cholesky = law
        values = jax.vmap(lambda e: target.log_density(point + cholesky @ e))(noise)
        log_det = jnp.sum(jnp.log(jnp.abs(jnp.diagonal(cholesky))))
        return jnp.mean(jnp.where(jnp.isnan(values), -jnp.inf, values)) + log_det

    return jax.lax.map(one, (points, choleskys), batch_size=64)
