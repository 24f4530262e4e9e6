"""The kernel Stein goodness-of-fit test, aggregated over bandwidths, its null by wild bootstrap."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Array, Float, Key
from scipy.spatial.distance import pdist, squareform

from pushforward.host import generator
from pushforward.trust.coordinates import View
from pushforward.trust.line import Line
from pushforward.trust.nulls import largest_of
from pushforward.trust.settings import LIMITS, CheckSettings


def goodness_line(key: Key[Array, ""], view: View, settings: CheckSettings) -> Line:
    """Return the test of `KSD = 0`.

    For each bandwidth `c` of the IMQ kernel the statistic is the U-statistic of the Stein kernel,

        S_c = 1/(m(m-1)) sum over i != j of k0(x_i, x_j),   S_c* = the same with signs e_i e_j,

    whose signed copies `S_c*` follow its law under the null (Dehling and Mikosch). Each is divided by the
    standard deviation of its copies; the largest over bandwidths is compared with the largest of each copy.
    """
    rng = generator(key)
    rows = rng.permutation(len(view.u))[: settings.ksd_draws]
    u, score = view.u[rows], view.score[rows]
    scales = bandwidths(u, score)
    signs = rng.choice(np.array([-1.0, 1.0], np.float32), (len(rows), settings.num_bootstraps))
    found, diagonal, copies = map(np.array, zip(*_statistics(u, score, scales, signs), strict=True))
    largest = largest_of(found, copies)
    best = largest.worst
    # A V-statistic of m exact draws would have this expectation: its diagonal over m.
    like = float(diagonal[best] / max(found[best], 1e-300))
    words = "over a million" if like > 1e6 else f"{like:,.0f}"
    return Line(
        name="ksd",
        title="KSD goodness of fit",
        statistic=float(largest.each[best]),
        measure=f"largest of {len(scales)} standardised U-statistics",
        null=f"wild bootstrap, {settings.num_bootstraps:,} copies, {len(rows):,} draws",
        p_value=largest.p_value,
        grave=like < LIMITS.grave_noise,
        found=f"The discrepancy is as large as the noise of {words} exact draws.",
        advice="The draws do not have the target's shape: train longer, or refine them by MALA.",
        details={
            "bandwidths": scales.tolist(),
            "ksd_u": found.tolist(),
            "standardised": largest.each.tolist(),
            "noise_of_draws": like,
        },
    )


def bandwidths(u: Float[np.ndarray, "m dim"], score: Float[np.ndarray, "m dim"]) -> Float[np.ndarray, " k"]:
    """Return bandwidths from the length on which the density changes to the typical distance of two draws."""
    far = typical_distance(u)
    near = float(np.sqrt(u.shape[1] / (np.median(np.sum(score**2, axis=1)) + 1e-30)))
    return np.geomspace(np.clip(near, 1e-2 * far, 0.25 * far), far, LIMITS.bandwidths)


def typical_distance(x: Float[np.ndarray, "m dim"]) -> float:
    """Return the median distance of two draws."""
    return float(np.median(pdist(x[: LIMITS.distance_draws])))


def _statistics(
    u: np.ndarray, score: np.ndarray, scales: np.ndarray, signs: np.ndarray
) -> Iterator[tuple[float, float, np.ndarray]]:
    """Yield the U-statistic of each bandwidth, the mean of its diagonal, and its signed copies.

    With `d = x - y` and `q = (1 + |d|^2)^(-1/2)` the Stein kernel of the inverse multiquadric is
    `k0 = s_x.s_y q + ((s_x - s_y).d + dim) q^3 - 3 |d|^2 q^5`.
    """
    m, dim = u.shape
    pairs, products = m * (m - 1.0), score @ score.T
    own = np.einsum("ni,ni->n", score, u)
    cross = score @ u.T
    drift = own[:, None] + own[None, :] - cross - cross.T
    square = squareform(pdist(u, "sqeuclidean"))
    for scale in scales:
        # A kernel of bandwidth c is one of bandwidth 1 in units of c, where scores are c times as large.
        apart = square / scale**2
        q = 1.0 / np.sqrt(1.0 + apart)
        table = q * (products * scale**2 + q**2 * (drift + dim - 3.0 * apart * q**2))
        diagonal = table.diagonal().mean()
        np.fill_diagonal(table, 0.0)
        copies = np.sum(signs * (table.astype(np.float32) @ signs), axis=0, dtype=np.float64) / pairs
        yield table.sum() / pairs, diagonal, copies
