"""The teacher's lesson: rounds of tempered particles and refitting, until the start is as good as the end.

Each round runs sequential Monte Carlo from a start law, then fits a frame and a mixture of normals to what
came out; the mixture, widened, is the next round's start. Rounds end when plain importance sampling from
the start is already efficient, for then the particles have nothing left to correct; where the curvature of a
single peak says all, there are none.
"""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.latents import NormalMixture
from pushforward.training.curvature import frame_of, lesson_of
from pushforward.training.effort import operations
from pushforward.training.lesson import Lesson, row_of, stand_in, widened
from pushforward.training.map_rounds import MAP_COST, good_map, through_maps
from pushforward.training.mixture_fit import reweigh
from pushforward.training.neck_rounds import seen_by_necks, through_necks
from pushforward.training.necks import NECKS_FROM
from pushforward.training.peaks import Peaks
from pushforward.training.scout import scout
from pushforward.training.smc import efficiency_of, teach
from pushforward.training.stops import with_stops

GOOD_START, GOOD_AT_ONCE = 0.4, 0.7
"""Efficiencies that end the rounds: from the second on, and already the first. Where maps can follow, a
mixture must be as good as they (`good_map`): it may be half efficient and know nothing of a neck that its
draws never entered."""

MAX_ROUNDS, ROUNDS_BEFORE_MAPS = 4, 2
NECK_COST = 1.5
"""What the first round along necks takes, next to the round before it."""

STOPS_IN = MAPS_IN = (4, 100)
"""Dimensions in which the stops of walks are looked at, and in which particles may be seen through a map:
below, particles find all mass; above, it is dear."""


MOST_WORK, FEWEST_PARTICLES = 6e8, 1024
"""Operations that looking once at all particles may take, and how few particles a dear target may get."""


def particles_for(target: Target) -> int:
    """Return how many particles a target gets: the cost of a round stays level."""
    dim = target.dim
    wanted = 32768 if dim <= 3 else 16384 if dim <= 16 else 8192 if dim <= 100 else 4096
    affordable = max(MOST_WORK / operations(target), FEWEST_PARTICLES)
    return min(wanted, 2 ** int(np.log2(affordable)))


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
    num_particles = num_particles or particles_for(target)
    key_scout, key_rounds = jax.random.split(key)
    observe("looking for modes")
    peaks = scout(key_scout, target)
    if STOPS_IN[0] <= target.dim <= STOPS_IN[1]:
        peaks = with_stops(jax.random.fold_in(key_scout, 1), target, peaks)
    frame, start = _first_start(peaks)
    laplace = frame_of(peaks) if len(peaks.points) == 1 else None
    if laplace is not None and target.dim >= MAPS_IN[0]:
        at_once = lesson_of(key_rounds, target, laplace, num_particles)
        if at_once.rounds[-1]["efficiency"] > GOOD_AT_ONCE:
            yield at_once
            return
    wanted = num_components or (64 if len(peaks.points) > 24 else 32)
    maps = MAPS_IN[0] <= target.dim <= MAPS_IN[1]
    rounds: list[dict[str, float]] = []
    before = 0.0
    while True:
        i = len(rounds)
        key_teach, key_fit = jax.random.split(jax.random.fold_in(key_rounds, i))
        observe(f"tempered particles, round {i + 1}")
        result = teach(key_teach, InFrame(target, frame), start, num_particles=num_particles)
        rounds.append(row_of(result))
        x = jax.vmap(frame)(result.draws)
        frame, mixture = stand_in(key_fit, x, wanted, jnp.asarray(peaks.points, float), laplace)
        u = jax.vmap(frame.inverse)(x)
        start = widened(mixture)
        found = result.start_efficiency
        if target.dim >= MAPS_IN[0]:
            # Starts are wide in every coordinate, and in many that alone is inefficient.
            found = float(efficiency_of(key_fit, InFrame(target, frame), mixture))
            rounds[-1]["efficiency"] = found
        if isinstance(mixture, NormalMixture):
            mixture = reweigh(mixture, u)
        good = found > (good_map(target.dim) if maps else GOOD_START if i > 0 else GOOD_AT_ONCE)
        # Another round of the same kind is worth its time only where the last one was.
        better = 0.1 < found > 2.0 * before
        lesson = Lesson(frame, mixture, u, result.log_z, list(rounds))
        necks = None
        if maps and target.dim >= NECKS_FROM and not good:
            necks = seen_by_necks(jax.random.fold_in(key_fit, 1), target, x, lesson)
        slow = maps and i + 1 >= ROUNDS_BEFORE_MAPS and not better
        last = good or i + 1 == MAX_ROUNDS or slow or necks is not None
        to_maps = last and maps and not good
        lesson = lesson._replace(ahead=NECK_COST if necks else MAP_COST if to_maps else 1.0)
        yield lesson
        if last:
            break
        before = found
    words = {"num_particles": num_particles, "observe": observe}
    if necks is not None:
        key_necks = jax.random.fold_in(key_rounds, MAX_ROUNDS + 1)
        taught = lesson
        for lesson in through_necks(key_necks, target, taught, necks, **words):
            yield lesson
        to_maps = lesson.rounds[-1]["efficiency"] <= good_map(target.dim)
    if to_maps:
        key_maps = jax.random.fold_in(key_rounds, MAX_ROUNDS)
        yield from through_maps(key_maps, target, lesson, **words)


def _first_start(peaks: Peaks) -> tuple[Frame, NormalMixture]:
    """Return the frame that the peaks span, and in it a wide mixture: the peaks, and all between."""
    points, choleskys = peaks.points, peaks.choleskys
    local = np.sqrt(np.mean(np.sum(choleskys**2, axis=2), axis=0))
    spread = np.std(points, axis=0)
    scale = np.sqrt(local**2 + spread**2)
    centre = points.mean(0)
    # No peak is ignored: a narrow guess of its mass must not cost us a mode.
    weights = np.exp(np.clip(peaks.log_masses - peaks.log_masses.max(), -4.0, 0.0))
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
    width = min(2.0, 1.0 + 2.0 * dim**-0.5)
    factors = np.concatenate([width * choleskys / scale[:, None], 5.0 * np.eye(dim)[None]])
    return frame, NormalMixture(*(jnp.asarray(a, float) for a in (weights, means, factors)))
