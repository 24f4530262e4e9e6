"""The teacher's rounds where draws have necks: particles seen through a map that takes the widths along."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.latents import NormalMixture
from pushforward.networks import Coupled
from pushforward.training.lesson import Lesson, row_of, standard, widened
from pushforward.training.map_rounds import GOOD_MAP, MAP_COST, good_map
from pushforward.training.neck_map import filled_up, necked
from pushforward.training.pulled_back import PulledBack
from pushforward.training.smc import bound_of, efficiency_of, teach

NEARLY = 1.0
"""Nats by which a map of necks may be further from the target than a mixture of normals: particles reach the
ends of a neck through it, of which the mixture knows nothing."""

MOST_ROUNDS, REACH = 4, 3.0
"""Rounds, and how many times wider along necks the start of each is than the draws before."""

AGAIN = 1.1
"""What another round takes, next to the last. More than one, hence these rounds, as those through maps, may
take more of a budget than others: they leave less to training."""


class Seen(NamedTuple):
    """A way of seeing draws: in a frame, necks and a narrow map along them, whose latents are normal."""

    necks: tuple[int, ...]
    frame: Frame
    network: Coupled

    def pulled_back(self, target: Target) -> Target:
        """Return the target in the coordinates of the map's latents."""
        return PulledBack(InFrame(target, self.frame), self.network)


def seen_by_necks(
    key: Key[Array, ""], target: Target, x: Float[Array, "m dim"], lesson: Lesson | None = None
) -> Seen | None:
    """Return the best map of the necks of draws `x`, if one is nearly as good as a `lesson`'s mixture.

    What is good is near to the target, not likely by the draws: those of an early round may share few
    ancestors, and a mixture of many normals knows their families by heart.
    """
    best, bound = None, -float("inf")
    if lesson is not None:
        bound = -NEARLY + float(bound_of(key, InFrame(target, lesson.frame), lesson.mixture))
    for white in (False, True):
        found = necked(x, white=white)
        if found is None:
            continue
        seen = Seen(*found)
        value = float(bound_of(key, seen.pulled_back(target), standard(target.dim)))
        if value > bound:
            best, bound = seen, value
    return best


def through_necks(
    key: Key[Array, ""],
    target: Target,
    lesson: Lesson,
    seen: Seen,
    *,
    num_particles: int,
    observe: Callable[[str], None],
) -> Iterator[Lesson]:
    """Go on where moves in a frame are slow, along necks; yields a lesson after every round.

    Each round is followed by a look at its own draws: if a map of their necks is the target, that is the
    last, and it needs no further particles.
    """
    normal, rounds = standard(target.dim), lesson.rounds
    for i in range(MOST_ROUNDS):
        key_teach, key_fit, key_fill = jax.random.split(jax.random.fold_in(key, i), 3)
        observe(f"tempered particles seen along necks, round {i + 1}")
        start = _reaching(seen.necks, target.dim)
        result = teach(key_teach, seen.pulled_back(target), start, num_particles=num_particles)
        x = jax.vmap(lambda z, by=seen: by.frame(by.network(z)))(result.draws)
        seen = seen_by_necks(key_fit, target, x) or seen
        found = float(efficiency_of(key_fit, seen.pulled_back(target), normal))
        # As in few dimensions: what is efficient may lack the end of a neck.
        good = found > GOOD_MAP
        rounds = [*rounds, {**row_of(result), "efficiency": found}]
        u, network = jax.vmap(seen.frame.inverse)(x), filled_up(key_fill, seen.network)
        to_maps = i + 1 == MOST_ROUNDS and found <= good_map(target.dim)
        yield Lesson(seen.frame, normal, u, result.log_z, rounds, network, MAP_COST if to_maps else AGAIN)
        if good:
            return


def _reaching(necks: tuple[int, ...], dim: int) -> NormalMixture:
    """Return the start of a round: a normal, wider, and much wider along the necks.

    What was learnt of the widths holds beyond where particles have been; so they get there at once.
    """
    law = widened(standard(dim))
    assert isinstance(law, NormalMixture)
    return NormalMixture(law.weights, law.means, law.choleskys.at[:, jnp.asarray(necks)].multiply(REACH))
