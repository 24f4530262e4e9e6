"""The teacher's last rounds, from four dimensions on: particles seen through a map fitted to those before."""

import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.frame import InFrame
from pushforward.latents import Mixture
from pushforward.training.affine import frame_from_draws
from pushforward.training.lesson import Lesson, mixture_of, row_of, split, standard, widened
from pushforward.training.pulled_back import PulledBack, fit_coupled, log_likelihood
from pushforward.training.smc import efficiency_of, teach

MAX_MAPS, FEW_MAPS, FEW_FROM = 4, 2, 33
"""Rounds at most; fewer from so many dimensions on, where each is dear."""

GOOD_MAP, MANY, NATS, LEAST = 0.9, 20, 0.015, 0.4
"""The efficiency that ends the rounds, and makes them needless: in few dimensions a high one, since a law may
be efficient and still lack the end of a thin neck, of which its draws know nothing; in `MANY` what so many
nats in each coordinate come to: efficiency is a product over coordinates, rounds are dear, and training mends
as much. Never less than `LEAST`."""

MAP_COST = 6.0
"""What the first round through a map takes, next to the round before it: most of it fits maps."""

SHORT_FIT, FIRST_FIT, NEXT_FIT = 300, 1000, 500
"""Steps of fits that are only judged, of the first map, and of those that begin at the one before."""


def good_map(dim: int) -> float:
    """Return the efficiency from which on particles need not be seen through a map, or through another."""
    return GOOD_MAP if dim < MANY else max(math.exp(-NATS * dim), LEAST)


def through_maps(
    key: Key[Array, ""],
    target: Target,
    lesson: Lesson,
    *,
    num_particles: int,
    observe: Callable[[str], None],
) -> Iterator[Lesson]:
    """Go on where moves in the frame do not reach, through maps; yields a lesson after every round."""
    for i in range(MAX_MAPS if target.dim < FEW_FROM else FEW_MAPS):
        key_choose, key_map, key_teach = jax.random.split(jax.random.fold_in(key, i), 3)
        observe(f"fitting a map, round {i + 1}")
        if lesson.network is None:
            lesson = _likeliest(key_choose, lesson)
        steps = FIRST_FIT if lesson.network is None else NEXT_FIT
        network = fit_coupled(key_map, lesson.draws, lesson.mixture, steps, lesson.network)
        observe(f"tempered particles seen through the map, round {i + 1}")
        through = PulledBack(InFrame(target, lesson.frame), network)
        result = teach(key_teach, through, widened(lesson.mixture), num_particles=num_particles)
        found = float(efficiency_of(key_choose, through, lesson.mixture))
        rounds = [*lesson.rounds, {**row_of(result), "efficiency": found}]
        draws = jax.vmap(network)(result.draws)
        lesson = Lesson(lesson.frame, lesson.mixture, draws, result.log_z, rounds, network)
        yield lesson
        if found > good_map(target.dim):
            return


def _likeliest(key: Key[Array, ""], lesson: Lesson) -> Lesson:
    """Return the lesson with the frame, bent or straight, and the latents, one normal or many, for a map.

    A bend is right where a coordinate has heavy tails of its own, and in the way where another coordinate
    makes them. Which it is, short fits say, by the likelihood of draws they have not seen.
    """
    key_fit, key_map = jax.random.split(key)
    x = jax.vmap(lesson.frame)(lesson.draws)
    held_out = split(x)[1]
    frames = [lesson.frame]
    if bool(jnp.any(lesson.frame.bend > 0)):
        frames.append(frame_from_draws(x, bend=False))
    best, found = lesson, -np.inf
    for frame in frames:
        u = jax.vmap(frame.inverse)(x)
        latents: list[Mixture] = [standard(frame.dim)]
        size = lesson.mixture.weights.shape[-1]
        if size > 1:
            same = frame is lesson.frame
            latents.append(lesson.mixture if same else mixture_of(key_fit, u, size, u[:0]))
        for latent in latents:
            network = fit_coupled(key_map, split(u)[0], latent, SHORT_FIT)
            value = float(log_likelihood(network, latent, frame, held_out))
            if value > found:
                best, found = lesson._replace(frame=frame, mixture=latent, draws=u), value
    return best
