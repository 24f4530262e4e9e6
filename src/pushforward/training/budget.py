"""How a wall-clock budget is spent: a share on the teacher, the rest on as many steps as there is time for.

A budget that plans changes what is computed, as the machine is fast or slow; one that only cuts does not, and
the same call can go on later to what it would have come to.
"""

import math
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Algorithm, Target
from pushforward.training.loop import nothing, run_piece
from pushforward.training.probing import ROWS, seconds_a_look
from pushforward.training.recall import FEWEST_PARTICLES
from pushforward.training.teacher import particles_for

TEACHER, MAPS, TRAINING, WALKING = 0.6, 0.8, 0.92, 0.96
"""Shares of the budget after which no further round, no first map (which is training too) and no step is
begun, and particles that are handed back walk no further. What is left is for weighing and last touches."""

A_ROUND, ROUNDS = 300, 3
"""Looks at the target that a particle takes in a round, about; and rounds there should be time for."""

FEWEST_STEPS, TRIALS = 50, 3
LONGER = 4
"""How many times its usual number of steps a fit may take where there is time."""


class Budget(NamedTuple):
    """Seconds from a start on `time.monotonic()`'s clock, and whether the phases are planned by them."""

    started: float = 0.0
    seconds: float = float("inf")
    plans: bool = False

    def until(self, share: float = 1.0) -> float:
        """Return when a share of the budget is spent; all of it, where nothing is planned."""
        return self.started + (share if self.plans else 1.0) * self.seconds

    def particles(self, target: Target) -> int | None:
        """Return how many particles there is time for; `None`: as many as the teacher wants."""
        if not self.plans:
            return None
        affordable = (
            TEACHER * self.seconds / (ROUNDS * A_ROUND * seconds_a_look(target, np.zeros((ROWS, target.dim))))
        )
        return min(particles_for(target), 2 ** int(math.log2(max(affordable, FEWEST_PARTICLES))))

    def another_round(self, last: float, ahead: float = 1.0) -> bool:
        """Say whether there is time for a round `ahead` times as long as the last one."""
        needed = ahead * last if self.plans else 0.0
        return time.monotonic() + needed < self.until(MAPS if ahead > 1.0 else TEACHER)

    def steps(self, key: Key[Array, ""], algorithm: Algorithm, state: Any, usual: int) -> int:
        """Return how many training steps there is time for, after some that are timed and forgotten."""
        began = time.monotonic()
        total = nothing(algorithm, key, state)

        def take(number: int) -> float:
            started = time.monotonic()
            jax.block_until_ready(
                run_piece(algorithm, key, state, total, jnp.asarray(0), jnp.asarray(number))
            )
            return time.monotonic() - started

        take(1)
        compiling = time.monotonic() - began
        each = min(take(TRIALS) for _ in range(TRIALS)) / TRIALS
        # The schedule is part of the program, which is compiled once more for another number of steps.
        left = self.until(TRAINING) - time.monotonic() - compiling
        return int(min(max(left / each, FEWEST_STEPS), LONGER * usual))
