"""The driver's side of a stage: how a budget is spent, and who is told.

A budget that plans changes what is computed, as the machine is fast or slow; one that only cuts does not, and
the same call can go on later to what it would have come to.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Algorithm, Target
from pushforward.devices import batch_mesh, on_all
from pushforward.probing import ROWS, seconds_a_look
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.run.trainer import Trainer
from pushforward.sampler import Sampler
from pushforward.training.alternating import Parts
from pushforward.training.loop import LoopResult, Row, nothing, run_piece
from pushforward.training.outcome import TimeIsUp
from pushforward.training.pace import Crew


class Progress(dict[str, Any]):
    """A row for a callback: the stage and its figures by name, and the sampler as it stands."""

    def __init__(self, row: Row | dict[str, Any], sampler: Callable[[], Sampler | None]):
        super().__init__(row)
        self._sampler = sampler

    @property
    def sampler(self) -> Sampler | None:
        """The sampler as it stands, once there is one."""
        return self._sampler()


class Clock:
    """Time, and what all stages of one fit share: its checkpoint, if any, its progress bar and callback.

    A budget of so many `seconds` from now decides how much is done if the clock `plans`; else it only cuts.
    """

    def __init__(
        self,
        recipe: Recipe,
        *,
        seconds: float = float("inf"),
        plans: bool = False,
        memory: Any = None,
        show: bool = False,
        callback: Callable[[Progress], Any] | None = None,
    ):
        self.started, self.seconds, self.plans = time.monotonic(), seconds, plans
        self.numbers, self.memory, self.show, self.callback = recipe.clock, memory, show, callback
        # All devices there are share the batches.
        self.crew = Crew(batch_mesh(), many=jax.process_count() > 1)
        self.observe: Callable[[str], None] = lambda words: None

    def until(self, share: float) -> float:
        """Return when a share of the budget is spent; all of it, where nothing is planned."""
        return self.started + (share if self.plans else 1.0) * self.seconds

    @property
    def over(self) -> bool:
        """Whether the budget is spent."""
        return time.monotonic() >= self.until(1.0)

    @contextmanager
    def alarm(self, can_stop: Callable[[], bool]) -> Iterator[None]:
        """Raise `TimeIsUp` amid whatever runs when the budget is over, once that `can_stop`.

        Only a main thread hears it, if nobody else has set one; in another a fit ends between two stages.
        """
        mine = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGALRM")
        many = self.crew.many or self.seconds == float("inf")
        if many or not mine or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
            yield
            return

        def ring(*_: Any) -> None:
            if can_stop():
                raise TimeIsUp
            signal.setitimer(signal.ITIMER_REAL, self.numbers.again)

        signal.signal(signal.SIGALRM, ring)
        late = self.until(1.0) + self.numbers.late * self.seconds
        signal.setitimer(signal.ITIMER_REAL, max(late - time.monotonic(), 1e-3))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def particles(self, target: Target, recipe: Recipe) -> int:
        """Return how many particles there is time for, at most those of the recipe."""
        wanted, numbers = recipe.annealing.num_particles, self.numbers
        assert wanted is not None
        if not self.plans:
            return wanted
        each = numbers.rounds * numbers.looks_a_round * seconds_a_look(target, np.zeros((ROWS, target.dim)))
        affordable = max(numbers.rounds_until * self.seconds / each, recipe.annealing.least_on_memory)
        return min(wanted, 2 ** int(math.log2(affordable)))

    def another(self, last: float, cost: float) -> bool:
        """Say whether there is time for a round `cost` times as long as the last one."""
        needed = cost * last if self.plans else 0.0
        share = self.numbers.maps_until if cost > 1.0 else self.numbers.rounds_until
        return time.monotonic() + needed < self.until(share)

    def steps(self, key: Key[Array, ""], algorithm: Algorithm, state: Any, usual: int) -> int:
        """Return how many training steps there is time for, after some that are timed and forgotten.

        None, where compiling them once more would take what is left.
        """
        numbers, began = self.numbers, time.monotonic()
        if began >= self.until(numbers.train_until):
            return 0
        state, total = on_all(state, self.crew.mesh), nothing(algorithm, key, state)

        def take(count: int) -> float:
            started = time.monotonic()
            jax.block_until_ready(run_piece(algorithm, key, state, total, jnp.asarray(0), jnp.asarray(count)))
            return time.monotonic() - started

        take(1)
        compiling = time.monotonic() - began
        each = min(take(numbers.trials) for _ in range(numbers.trials)) / numbers.trials
        # The schedule is part of the program, which is compiled once more for another number of steps.
        left = self.until(numbers.train_until) - time.monotonic() - compiling
        return int(min(max(left / each, numbers.least_steps), numbers.longer * usual)) if left > 0.0 else 0

    def train(self, key: Key[Array, ""], state: State, recipe: Recipe) -> tuple[Parts, LoopResult]:
        """Run the loop on the state's parts, with checkpoints, devices, a progress bar and callbacks."""
        return Trainer(key, state, recipe, self).run()

    def tell(self, row: dict[str, Any], sampler: Callable[[], Sampler | None]) -> bool:
        """Hand a row to the user's callback; say whether that stops the fit."""
        return self.callback is not None and self.callback(Progress(row, sampler)) is True
