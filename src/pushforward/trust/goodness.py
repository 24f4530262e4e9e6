"""The kernel Stein goodness-of-fit test, aggregated over bandwidths, its null by wild bootstrap."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.kernels import IMQ, squared_distances
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
    key_rows, key_signs = jax.random.split(key)
    rows = np.asarray(jax.random.permutation(key_rows, view.u.shape[0]))[: settings.ksd_draws]
    u, score = np.asarray(view.u)[rows], np.asarray(view.score)[rows]
    scales = bandwidths(u, score)
    u, score, widths = (jax.device_put(a) for a in (u, score, scales.astype(u.dtype)))
    found, diagonal, copies = (
        np.asarray(a, np.float64) for a in _statistics(key_signs, u, score, widths, settings.num_bootstraps)
    )
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
    some = jax.device_put(x[: LIMITS.distance_draws])
    pairs = np.triu_indices(len(some), 1)
    return float(np.sqrt(np.median(np.asarray(squared_distances(some, some))[pairs])))


@eqx.filter_jit
def _statistics(
    key: Key[Array, ""],
    u: Float[Array, "m dim"],
    score: Float[Array, "m dim"],
    scales: Float[Array, " k"],
    num_bootstraps: int,
) -> tuple[Float[Array, " k"], Float[Array, " k"], Float[Array, "k b"]]:
    m = u.shape[0]
    signs = jax.random.rademacher(key, (m, num_bootstraps), u.dtype)

    def one(scale):
        # A kernel of bandwidth c is one of bandwidth 1 in units of c, where scores are c times as large.
        x, s = u / scale, score * scale
        table = IMQ().stein_gram(x, x, s, s)
        diagonal = jnp.diagonal(table)
        table = table - jnp.diag(diagonal)
        pairs = m * (m - 1.0)
        copies = jnp.sum(signs * (table @ signs), axis=0) / pairs
        return jnp.mean(jnp.sum(table, axis=1)) / (m - 1.0), jnp.mean(diagonal), copies

    return jax.lax.map(one, scales)
