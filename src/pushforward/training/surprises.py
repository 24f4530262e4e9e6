"""Places where the density is higher than the hills found so far can account for.

A walk uphill ends on the hill from which it is the fewest deviations away, so that a narrow hill among wide
ones draws in what begins near it only: in twenty dimensions one start in a hundred thousand. A walk takes
hundreds of looks at the target; whether a place belongs to a hill that is known, one look tells. So very many
places are looked at, and walks begin where

    log q(x) - max_k ( log q(p_k) - |L_k^-1 (x - p_k)|^2 / 2 )

says that no normal law around a known peak `p_k` explains how high it is there.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.training.effort import operations
from pushforward.training.peaks import MAX_MODES, Peaks

MOST_LOOKS, MOST_ENTRIES, MOST_WORK = 2**20, 2**24, 4e9
"""Places that are looked at in a round, their coordinates, and the operations that they may take."""

ALONE = 0.25
"""The share of these looks that there are where one peak is known, and may be all there is."""

UNEXPLAINED = 5.0
"""Nats by which a place must lie higher than known hills are there."""

PADDING, APART, WIDE = 0.25, (0.1, 3.0), (2.0, 30.0)
"""By what share the box in which places lie is wider than what known peaks span; and how far from known peaks
others lie, in units of the peaks' distances from each other and of a peak's own width."""

MOST_PLACES, FEW, TILE = 256, 16, 1024
"""Places that are asked for where all these looks are taken; peaks that are few; places in one go."""


def surprising_places(
    key: Key[Array, ""], target: Target, peaks: Peaks, most: int
) -> tuple[Float[Array, "_n dim"], Float[Array, " dim"]]:
    """Return at most so many places that no known peak explains, and each coordinate's least width at a peak.

    Fewer places are looked at for few of them.
    """
    # A peak known twice explains no more than once, and few numbers of peaks make few programs.
    known = len(peaks.points)
    rows = np.resize(np.arange(known), FEW if known <= FEW else MAX_MODES)
    points, factors, tops = (jnp.asarray(each[rows], float) for each in peaks)
    each = operations(target) + 0.1 * len(rows) * target.dim**2
    share = min(1.0, most / MOST_PLACES) * (ALONE if known == 1 else 1.0)
    looks = int(share * min(MOST_LOOKS, MOST_ENTRIES / target.dim, MOST_WORK / each))
    x = _places(key, points, factors, max(looks, most))
    # In double precision: far out, single would be off by as many nats as should surprise.
    whitens = jnp.asarray(np.linalg.inv(peaks.choleskys[rows]), float)
    heights, above = (np.asarray(found) for found in _seen(target, x, points, whitens, tops))
    told = np.flatnonzero(above > UNEXPLAINED)
    # The most surprising may all be far out in one heavy tail, the highest all at the foot of one hill.
    chosen = [told[np.argsort(-by[told])[: most // 2]] for by in (above, heights)]
    return x[np.union1d(*chosen)], jnp.min(jnp.linalg.norm(factors, axis=2), axis=0)


@eqx.filter_jit
def _places(
    key: Key[Array, ""], points: Float[Array, "k dim"], factors: Float[Array, "k dim dim"], count: int
) -> Float[Array, "_n dim"]:
    """Return places in a box around all peaks, and around each as far as peaks are apart, or are wide."""
    key_box, key_peak, key_radius, key_noise = jax.random.split(key, 4)
    third, dim = -(-count // 3), points.shape[1]
    width = jnp.max(jnp.linalg.norm(factors, axis=2), axis=0)
    low, high = jnp.min(points, axis=0) - 3.0 * width, jnp.max(points, axis=0) + 3.0 * width
    pad = PADDING * (high - low)
    box = jax.random.uniform(key_box, (third, dim), minval=low - pad, maxval=high + pad)
    which = jax.random.randint(key_peak, (2, third), 0, len(points))
    u, noise = jax.random.uniform(key_radius, (2, third, 1)), jax.random.normal(key_noise, (2, third, dim))
    spread = jnp.sqrt(jnp.var(points, axis=0) + width**2)
    apart = points[which[0]] + _between(u[0], APART) * spread * noise[0]
    own = jax.lax.map(lambda one: factors[one[0]] @ one[1], (which[1], noise[1]), batch_size=TILE)
    return jnp.concatenate([box, apart, points[which[1]] + _between(u[1], WIDE) * own])


def _between(u: Array, ends: tuple[float, float]) -> Array:
    """Return numbers between two, even in their logarithms."""
    low, high = np.log(ends)
    return jnp.exp(low + (high - low) * u)


@eqx.filter_jit
def _seen(
    target: Target,
    x: Float[Array, "n dim"],
    points: Float[Array, "k dim"],
    whitens: Float[Array, "k dim dim"],
    tops: Float[Array, " k"],
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Return how high each place is, and how much higher than known peaks explain."""

    def one(place):
        height = target.log_density(place)
        away = jnp.einsum("kij,kj->ki", whitens, place - points)
        known = jnp.max(tops - 0.5 * jnp.sum(away**2, axis=1))
        return jnp.where(jnp.isfinite(height), height, -jnp.inf), height - known

    heights, above = jax.lax.map(one, x, batch_size=TILE)
    return heights, jnp.where(jnp.isfinite(above), above, -jnp.inf)
