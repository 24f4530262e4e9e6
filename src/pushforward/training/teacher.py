"""The teacher's lesson: rounds of tempered particles and refitting, until the start is as good as the end.

Each round runs sequential Monte Carlo from a start law, then fits a frame and a mixture of normals to what
came out; the mixture, widened, is the next round's start. Rounds end when plain importance sampling from
the start is already efficient, for then the particles have nothing left to correct.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.latents import NormalMixture
from pushforward.training.affine import frame_from_draws
from pushforward.training.mixture_fit import fit_mixture, mean_log_density, reweigh
from pushforward.training.scout import Peaks, scout
from pushforward.training.smc import Teaching, teach

EM_ROWS = 8192
GOOD_START = 0.4
MAX_ROUNDS = 4
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


def particles_for(dim: int) -> int:
    """Return how many particles a target of this dimension gets: the cost of a round stays level."""
    return 32768 if dim <= 3 else 16384 if dim <= 16 else 8192 if dim <= 100 else 4096


def learn(
    key: Key[Array, ""],
    target: Target,
    *,
    num_particles: int | None = None,
    num_components: int | None = None,
    observe: Callable[[str], None] = lambda words: None,
) -> Iterator[Lesson]:
    """Find modes, weights, scales and tails of `target` from its log density alone.

    Yields a lesson after every round, each better than the one before; the last is the one to use.
    """
    num_particles = num_particles or particles_for(target.dim)
    key_scout, key_rounds = jax.random.split(key)
    observe("looking for modes")
    peaks = scout(key_scout, target)
    frame, start = _first_start(peaks)
    wanted = num_components or (64 if len(peaks.points) > 24 and target.dim <= 3 else 32)
    rounds: list[dict[str, float]] = []
    while True:
        i = len(rounds)
        key_teach, key_fit = jax.random.split(jax.random.fold_in(key_rounds, i))
        observe(f"tempered particles, round {i + 1}")
        result = teach(key_teach, InFrame(target, frame), start, num_particles=num_particles)
        rounds.append(_row(result))
        x = jax.vmap(frame)(result.draws)
        frame = frame_from_draws(x)
        u = jax.vmap(frame.inverse)(x)
        mixture = _fit(key_fit, u, wanted, len(peaks.points))
        start = _widen(mixture)
        yield Lesson(frame, reweigh(mixture, u), u, result.log_z, list(rounds))
        if len(rounds) == MAX_ROUNDS or (i > 0 and result.start_efficiency > GOOD_START):
            return


def _row(result: Teaching) -> dict[str, float]:
    return {
        "log_z": result.log_z,
        "temperatures": result.num_temperatures,
        "acceptance": result.acceptance,
        "start_efficiency": result.start_efficiency,
    }


def _first_start(peaks: Peaks) -> tuple[Frame, NormalMixture]:
    """Return the frame that the peaks span, and in it a wide mixture: the peaks, and all between."""
    points, choleskys = peaks.points, peaks.choleskys
    local = np.sqrt(np.mean(np.sum(choleskys**2, axis=2), axis=0))
    spread = np.std(points, axis=0)
    scale = np.sqrt(local**2 + spread**2)
    centre = points.mean(0)
    mass = peaks.log_densities + np.log(np.diagonal(choleskys, axis1=1, axis2=2)).sum(1)
    # No peak is ignored: a narrow guess of its mass must not cost us a mode.
    weights = np.exp(np.clip(mass - mass.max(), -4.0, 0.0))
    weights = np.append(0.8 * weights / weights.sum(), 0.2)
    dim = len(centre)
    frame = Frame(
        centre=jnp.asarray(centre, float),
        scale=jnp.asarray(scale, float),
        bend=jnp.zeros(dim),
        shift=jnp.zeros(dim),
        matrix=jnp.eye(dim),
    )
    means = np.vstack([(points - centre) / scale, np.zeros(dim)])
    factors = np.concatenate([2.0 * choleskys / scale[:, None], 5.0 * np.eye(dim)[None]])
    return frame, NormalMixture(*(jnp.asarray(a, float) for a in (weights, means, factors)))


def _fit(key: Key[Array, ""], u: Float[Array, "m dim"], wanted: int, num_peaks: int) -> NormalMixture:
    """Fit mixtures of several sizes; return the smallest that unseen draws hardly tell from the best.

    Components to spare cost nothing in likelihood and yet do harm: they are narrow, and the mixture's score,
    from which Fisher training starts, is jagged between them.
    """
    key_rows, key_em = jax.random.split(key)
    rows = jax.random.choice(key_rows, u.shape[0], (2 * EM_ROWS,))
    train, held_out = u[rows[:EM_ROWS]], u[rows[EM_ROWS:]]
    dim = u.shape[1]
    # Where full covariances have many entries, so many components as the draws can pay for.
    few = max(1, min(num_peaks, wanted, EM_ROWS // (4 * dim)))
    sizes = {1, 4, 16, wanted} if dim <= 3 else {1, few, max(wanted // 4, 1)}
    fits = [fit_mixture(key_em, train, size) for size in sorted(sizes)]
    found = [float(mean_log_density(mixture, held_out)) for mixture in fits]
    return next(m for m, value in zip(fits, found, strict=True) if value >= max(found) - TOLERANCE)


def _widen(mixture: NormalMixture) -> NormalMixture:
    """Widen every component, and give a twentieth of the mass to one three times as wide as the frame."""
    dim = mixture.dim
    return NormalMixture(
        weights=jnp.append(0.95 * mixture.weights, 0.05),
        means=jnp.vstack([mixture.means, jnp.zeros(dim)]),
        choleskys=jnp.concatenate([WIDEN * mixture.choleskys, 3.0 * jnp.eye(dim)[None]]),
    )
