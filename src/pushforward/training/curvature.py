"""The normal law of a peak's curvature: a frame without the noise of draws, and at times the whole lesson."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.training.lesson import Lesson, standard
from pushforward.training.path import Between, Population, effective_share
from pushforward.training.peaks import Peaks
from pushforward.training.smc import NUM_SNAPSHOTS, resample


def frame_of(peaks: Peaks) -> Frame:
    """Return the frame in which the normal law of the first peak's curvature is standard."""
    cholesky = peaks.choleskys[0]
    scale = np.linalg.norm(cholesky, axis=1)
    zero = np.zeros(len(scale))
    fields = peaks.points[0], scale, zero, zero, cholesky / scale[:, None]
    return Frame(*(jnp.asarray(field, float) for field in fields))


def lesson_of(key: Key[Array, ""], target: Target, frame: Frame, num_particles: int) -> Lesson:
    """Return all there is to learn of a target that is nearly normal: draws chosen by their weights.

    How nearly it is so, its row says: the effective share of plain importance sampling from the normal law.
    """
    key_draws, key_choose = jax.random.split(key)
    law = standard(target.dim)
    u = law.sample(key_draws, NUM_SNAPSHOTS * num_particles)
    population = Population(u, *_ends(Between(InFrame(target, frame), law), u))
    w = population.log_target - population.log_start
    log_z = float(logsumexp(w)) - np.log(len(u))
    share = float(effective_share(w))
    draws = resample(key_choose, population, w).x
    return Lesson(frame, law, draws, log_z, [{"log_z": log_z, "efficiency": share}])


@eqx.filter_jit
def _ends(between: Between, u: Float[Array, "n dim"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    return jax.lax.map(between.ends, u, batch_size=1024)
