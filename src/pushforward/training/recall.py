"""What a fit takes up from before: its own checkpoint, or what the first of many processes hands over."""

import warnings
from collections.abc import Callable, Iterator

import jax
from jaxtyping import Array, Key

from pushforward import distributed
from pushforward.base import Target
from pushforward.failures import is_exhausted
from pushforward.training.checkpoint import TEACHER, Checkpoint
from pushforward.training.lesson import Lesson
from pushforward.training.loop import Position
from pushforward.training.teacher import particles_for

FEWEST_PARTICLES = 512


def lessons(
    teacher: Callable[..., Iterator[Lesson]],
    key: Key[Array, ""],
    target: Target,
    *,
    num_particles: int | None,
    observe: Callable[[str], None],
) -> Iterator[Lesson]:
    """Yield the teacher's lessons; where memory runs out, from the beginning with half the particles."""
    while True:
        try:
            yield from teacher(key, target, num_particles=num_particles, observe=observe)
            return
        except (jax.errors.JaxRuntimeError, MemoryError) as error:
            num_particles = (num_particles or particles_for(target)) // 2
            if not is_exhausted(error) or num_particles < FEWEST_PARTICLES:
                raise
            warnings.warn(
                f"memory ran out: the teacher goes on with {num_particles:,} particles.", stacklevel=2
            )


def recalled_lesson(memory: Checkpoint | None) -> tuple[Lesson, float] | None:
    """Return what the teacher taught before, and in how many seconds; all but the chief wait for it."""
    if memory is None:
        return None
    if not distributed.is_chief():
        distributed.hand_over("lesson", memory.folder / TEACHER)
    found = memory.lesson()
    if found is not None and jax.process_count() > 1 and distributed.is_chief():
        distributed.hand_over("lesson", memory.folder / TEACHER)
    return found


def keep_lesson(memory: Checkpoint | None, lesson: Lesson, seconds: float, *, whole: bool) -> None:
    """Write the lesson down, unless time cut it short; and hand it to the processes that wait for it."""
    many = jax.process_count() > 1
    if memory is None or not (whole or many):
        return
    memory.keep_lesson(lesson, seconds)
    if many and distributed.is_chief():
        distributed.hand_over("lesson", memory.folder / TEACHER)


def recalled_position(memory: Checkpoint, begin: Position, num_steps: int) -> tuple[Position, int] | None:
    """Return where an earlier run came to; of many processes, all begin where the chief does."""
    chief = distributed.is_chief()
    found = memory.restore(begin, num_steps) if chief else None
    if jax.process_count() == 1:
        return found
    if chief:
        memory.keep(begin if found is None else found[0], now=True)
    distributed.hand_over("state", memory.newest() if chief else memory.first)
    return memory.restore(begin, num_steps)
