"""What a teacher hands over, and the mixture of normals that stands for its draws."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.frame import Frame
from pushforward.latents import NormalMixture
from pushforward.networks import Coupled
from pushforward.training.mixture_fit import fit_mixture, mean_log_density
from pushforward.training.smc import Teaching

EM_ROWS = 8192
TOLERANCE = 0.001
"""Nats a draw by which a smaller mixture may be worse than the best: far less than training mends."""

WIDEN = 1.25
"""Starts are wider than what was seen: importance weights forgive excess and never lack."""


class Lesson(NamedTuple):
    """What was learnt of the target: a frame, a mixture of normals and draws in it, and `log Z`."""

    frame: Frame
    mixture: NormalMixture
    draws: Float[Array, "m dim"]
    log_z: float
    rounds: list[dict[str, float]]
    network: Coupled | None = None
    """A map from the mixture to such draws, where the last rounds needed one."""


def row_of(result: Teaching) -> dict[str, float]:
    """Return what is told of a round."""
    return {
        "log_z": result.log_z,
        "temperatures": result.num_temperatures,
        "acceptance": result.acceptance,
        "start_efficiency": result.start_efficiency,
    }


def mixture_of(
    key: Key[Array, ""], u: Float[Array, "m dim"], wanted: int, peaks: Float[Array, "k dim"]
) -> NormalMixture:
    """Fit mixtures of several sizes; return the smallest that unseen draws hardly tell from the best.

    Components to spare cost nothing in likelihood and yet do harm: they are narrow, and the mixture's score,
    from which Fisher training starts, is jagged between them.
    """
    key_rows, key_em = jax.random.split(key)
    rows = jax.random.choice(key_rows, u.shape[0], (2 * EM_ROWS,))
    train, held_out = u[rows[:EM_ROWS]], u[rows[EM_ROWS:]]
    dim = u.shape[1]
    # Where full covariances have many entries, so many components as the draws can pay for.
    most = max(1, min(wanted, EM_ROWS // (4 * dim)))
    sizes = {1, 4, 16, wanted} if dim <= 3 else {1, min(8, most), most}
    fits = [fit_mixture(key_em, train, size) for size in sorted(sizes)]
    if dim > 3 and 1 < len(peaks) <= most:
        # Among many modes far apart, rows chosen far from each other still miss some; the peaks do not.
        fits.append(fit_mixture(key_em, train, len(peaks), centres=peaks))
    found = [float(mean_log_density(mixture, held_out)) for mixture in fits]
    return next(m for m, value in zip(fits, found, strict=True) if value >= max(found) - TOLERANCE)


def widened(mixture: NormalMixture) -> NormalMixture:
    """Widen every component, and give a twentieth of the mass to one three times as wide as the frame."""
    dim = mixture.dim
    return NormalMixture(
        weights=jnp.append(0.95 * mixture.weights, 0.05),
        means=jnp.vstack([mixture.means, jnp.zeros(dim)]),
        choleskys=jnp.concatenate([WIDEN * mixture.choleskys, 3.0 * jnp.eye(dim)[None]]),
    )
