"""What a teacher hands over, and the mixture of normals that stands for its draws."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Mixture, NormalMixture
from pushforward.networks import Coupled
from pushforward.training.affine import frame_from_draws
from pushforward.training.mixture_fit import fit_independent, fit_mixture, mean_log_density
from pushforward.training.smc import NUM_SNAPSHOTS, Teaching

EM_ROWS = 8192
EM_STEPS, FEW_COMPONENTS, ALIKE = 20, 8, (300.0, 3.0)
"""In many dimensions: steps of a fit, and components that differ little or much in their shapes."""

MAX_ENTRIES = 2**22
"""Rows times coordinates that mixtures of single coordinates are fitted to."""

TOLERANCE = 0.001
"""Nats a draw by which a smaller mixture may be worse than the best: far less than training mends."""

WIDEN = 1.25
"""Starts are wider than what was seen: importance weights forgive excess and never lack. In many
coordinates there is less of it, since what it costs is a power of their number."""


class Lesson(NamedTuple):
    """What was learnt of the target: a frame, a mixture of normals and draws in it, and `log Z`."""

    frame: Frame
    mixture: Mixture
    draws: Float[Array, "m dim"]
    log_z: float
    rounds: list[dict[str, float]]
    network: Coupled | None = None
    """A map from the mixture to such draws, where the last rounds needed one."""
    ahead: float = 1.0
    """How many times as long as the round before it the next round takes, if there is one."""


def row_of(result: Teaching) -> dict[str, float]:
    """Return what is told of a round."""
    return {
        "log_z": result.log_z,
        "temperatures": result.num_temperatures,
        "acceptance": result.acceptance,
        "start_efficiency": result.start_efficiency,
    }


def stand_in(
    key: Key[Array, ""],
    x: Float[Array, "m dim"],
    wanted: int,
    peaks: Float[Array, "k dim"],
    laplace: Frame | None = None,
) -> tuple[Frame, Mixture]:
    """Return the frame, and in it the mixture, that stand best for a teacher's draws.

    From four dimensions on unseen draws say which: bends may be wrong, since what looks like a coordinate's
    heavy tail may be modes of unequal weight. And where there is one peak, the frame of its curvature,
    `laplace`, may be better than any from draws, which in many dimensions are few for a covariance.
    """
    if x.shape[1] <= 3:
        frame = frame_from_draws(x)
        u, inside = (jax.vmap(frame.inverse)(points) for points in (x, peaks))
        return frame, mixture_of(key, u, wanted, inside)
    frames = [frame_from_draws(x)]
    if bool(jnp.any(frames[0].bend > 0)):
        frames.append(frame_from_draws(x, bend=False))
    found: list[tuple[Frame, Mixture]] = []
    for frame in frames:
        u, inside = (jax.vmap(frame.inverse)(points) for points in (x, peaks))
        found.append((frame, mixture_of(key, u, wanted, inside)))
    if laplace is not None:
        found.append((laplace, standard(laplace.dim)))
    held_out = split(x)[1]
    return max(found, key=lambda both: float(_log_likelihood(*both, held_out)))


@eqx.filter_jit
def _log_likelihood(frame: Frame, mixture: Mixture, x: Float[Array, "m dim"]) -> Float[Array, ""]:
    def one(point):
        u = frame.inverse(point)
        return mixture.log_density(u) - frame.log_det(u)

    return jnp.mean(jax.lax.map(one, x, batch_size=1024))


def standard(dim: int) -> NormalMixture:
    """Return the standard normal as a mixture of one."""
    return NormalMixture(jnp.ones(1), jnp.zeros((1, dim)), jnp.eye(dim)[None])


def split(u: Float[Array, "m dim"]) -> tuple[Float[Array, "a dim"], Float[Array, "b dim"]]:
    """Return three quarters of a teacher's draws to learn from, and the rest to judge by.

    The populations of a teacher follow each other, and a particle moves little between them, nor far from its
    copies beside it: whole stretches of particles are held out, in all populations.
    """
    each = len(u) // NUM_SNAPSHOTS
    runs = u[: NUM_SNAPSHOTS * each].reshape(NUM_SNAPSHOTS, each, -1)
    at = 3 * each // 4
    return runs[:, :at].reshape(NUM_SNAPSHOTS * at, -1), runs[:, at:].reshape(NUM_SNAPSHOTS * (each - at), -1)


def mixture_of(
    key: Key[Array, ""], u: Float[Array, "m dim"], wanted: int, peaks: Float[Array, "k dim"]
) -> Mixture:
    """Fit mixtures of several sizes; return the smallest that unseen draws hardly tell from the best.

    Components to spare cost nothing in likelihood and yet do harm: they are narrow, and the mixture's score,
    from which Fisher training starts, is jagged between them.
    """
    key_rows, key_em = jax.random.split(key)
    if u.shape[1] <= 3:
        rows = jax.random.choice(key_rows, len(u), (2 * EM_ROWS,))
        train, held_out = u[rows[:EM_ROWS]], u[rows[EM_ROWS:]]
        fits = [fit_mixture(key_em, train, size) for size in sorted({1, 4, 16, wanted})]
    else:
        train, held_out = split(u)
        fits = _in_many_dimensions(key_em, train, wanted, peaks)
    found = [float(mean_log_density(mixture, held_out)) for mixture in fits]
    return next(m for m, value in zip(fits, found, strict=True) if value >= max(found) - TOLERANCE)


def _in_many_dimensions(
    key: Key[Array, ""], train: Float[Array, "m dim"], wanted: int, peaks: Float[Array, "k dim"]
) -> list[Mixture]:
    """Return fits, the simplest first, where full covariances have many entries for the draws there are."""
    dim = train.shape[1]
    # In its frame the teacher's law is white; coordinates on their own need fewer rows than shapes do.
    fits: list[Mixture] = [standard(dim), fit_independent(train[: MAX_ENTRIES // dim])]
    # So many components as the draws can pay for.
    most = max(1, min(wanted, len(train) // (12 * dim)))
    if 1 < len(peaks) <= most:
        # Among many modes far apart, rows chosen far from each other still miss some; the peaks do not.
        size, centres = len(peaks), peaks
    else:
        size, centres = most, None
    if size > 1:
        for shared in ALIKE:
            fits.append(fit_mixture(key, train, size, centres=centres, shared=shared, num_steps=EM_STEPS))
    if size > FEW_COMPONENTS:
        fits.append(fit_mixture(key, train, FEW_COMPONENTS, num_steps=EM_STEPS))
    return fits


def widened(mixture: Mixture) -> Mixture:
    """Widen every component, and give a twentieth of the mass to one three times as wide as the frame."""
    dim = mixture.dim
    width = min(WIDEN, 1.0 + dim**-0.5)
    if isinstance(mixture, IndependentMixtures):
        # Of many coordinates with a broad component each, one would be far out in every draw.
        return IndependentMixtures(mixture.weights, mixture.means, width * mixture.scales)
    return NormalMixture(
        weights=jnp.append(0.95 * mixture.weights, 0.05),
        means=jnp.vstack([mixture.means, jnp.zeros(dim)]),
        choleskys=jnp.concatenate([width * mixture.choleskys, 3.0 * jnp.eye(dim)[None]]),
    )
