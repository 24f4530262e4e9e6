"""With draws that are to be trusted: two-sample tests, and a distance beside its floor."""

import jax
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.spatial.distance import pdist, squareform

from pushforward.frame import Frame
from pushforward.host import generator, on_device
from pushforward.metrics import sliced_w2
from pushforward.trust.coordinates import bounded
from pushforward.trust.goodness import typical_distance
from pushforward.trust.line import Line
from pushforward.trust.nulls import largest_of, sidak
from pushforward.trust.settings import LIMITS, CheckSettings


def reference_lines(
    key: Key[Array, ""],
    draws: Float[np.ndarray, "n dim"],
    reference: Float[np.ndarray, "m dim"],
    frame: Frame,
    settings: CheckSettings,
) -> list[Line]:
    """Return a kernel two-sample test and one of each coordinate's mean and spread."""
    x, y = (bounded(frame, a) for a in (draws, reference))
    return [_kernel(key, x, y, settings), _moments(x, y)]


def _moments(x: np.ndarray, y: np.ndarray) -> Line:
    """Compare means and spreads of bounded coordinates by Welch's z, Sidak over all."""
    both = [np.hstack([a, (a - y.mean(axis=0)) ** 2]).astype(np.float64) for a in (x, y)]
    gap = both[0].mean(axis=0) - both[1].mean(axis=0)
    error = np.sqrt(sum(a.var(axis=0) / len(a) for a in both)) + 1e-300
    z, dim = gap / error, x.shape[1]
    effect = np.abs(gap) / (both[1].std(axis=0) + 1e-300)
    worst = int(np.argmax(np.abs(z)))
    what = f"{'mean' if worst < dim else 'spread'} of x[{worst % dim}]"
    return Line(
        name="reference moments",
        title="Means and spreads against the reference",
        statistic=float(abs(z[worst])),
        measure=f"largest |z| of {2 * dim}",
        null=f"normal, Sidak over {2 * dim}",
        p_value=sidak(abs(z[worst]), 2 * dim),
        grave=bool(effect[worst] > LIMITS.grave_effect),
        found=f"Farthest off: {what}, by {effect[worst]:.2f} sd (z = {z[worst]:+.1f}).",
        advice="If the reference can be trusted, the sampler cannot: train longer or refine.",
        details={"z": z.tolist()},
    )


def _kernel(key: Key[Array, ""], x: np.ndarray, y: np.ndarray, settings: CheckSettings) -> Line:
    """Compare equally many of both sides by MMD over several bandwidths, its null by changing places."""
    rng, m = generator(key), min(len(x), len(y), settings.ksd_draws // 2)
    some = [a[rng.permutation(len(a))[:m]] for a in (x, y)]
    scales = (typical_distance(some[1]) + 1e-12) * np.array(LIMITS.reference_scales)
    sides = np.repeat(np.array([1.0, -1.0], np.float32), m)
    # Shuffled, so that both sides keep their size: then the test is exact.
    signs = np.stack([sides, *(rng.permutation(sides) for _ in range(settings.num_bootstraps))], axis=1)
    apart = squareform(pdist(np.vstack(some), "sqeuclidean"))
    found, copies = [], []
    for scale in scales:
        table = np.exp(-0.5 * apart / scale**2).astype(np.float32)
        np.fill_diagonal(table, 0.0)
        values = np.einsum("nb,nb->b", signs, table @ signs).astype(np.float64) / m**2
        found.append(values[0] - values[1:].mean())
        copies.append(values[1:] - values[1:].mean())
    largest = largest_of(np.array(found), np.array(copies))
    distance, floor = _sliced(key, *some)
    return Line(
        name="reference",
        title="Two samples: draws and reference",
        statistic=float(largest.each[largest.worst]),
        measure=f"largest of {len(scales)} standardised MMDs",
        null=f"{settings.num_bootstraps:,} exchanges, {m:,} draws a side",
        p_value=largest.p_value,
        grave=distance > LIMITS.grave_distance * floor,
        found=f"Sliced W2 in bounded coordinates: {distance:.4f}, {distance / floor:.2f} times its floor.",
        advice="If the reference can be trusted, the sampler cannot: look at where the two differ.",
        details={"sliced_w2": distance, "floor": floor, "mmd": found},
    )


def _sliced(key: Key[Array, ""], x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the distance and its floor: that of two halves of both sides shuffled together."""
    key_shuffle, key_directions = jax.random.split(key)
    pooled = np.vstack([x, y])
    pooled = pooled[np.asarray(jax.random.permutation(key_shuffle, len(pooled)))]
    sides = (x, y), (pooled[: len(x)], pooled[len(x) :])
    distance, floor = (
        float(sliced_w2(key_directions, on_device(one), on_device(other))) for one, other in sides
    )
    return distance, max(floor, 1e-12)
