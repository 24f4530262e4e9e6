"""The driver's side of a stage: how a budget is spent, and the loop with all that surrounds it.

A budget that plans changes what is computed, as the machine is fast or slow; one that only cuts does not, and
the same call can go on later to what it would have come to.
"""

import dataclasses
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Algorithm, Target
from pushforward.objectives.exact_kl import ExactKL
from pushforward.probing import ROWS, seconds_a_look
from pushforward.recipe.judge import in_vain, learnt
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.run.monitor import watch
from pushforward.run.progress import progress_bar
from pushforward.sampler import Sampler
from pushforward.training.alternating import Parts, alternating, averaged
from pushforward.training.loop import LoopResult, Patience, Position, Row, nothing, run, run_piece
from pushforward.training.outcome import Outcome
from pushforward.training.pace import Crew, batch_mesh


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
        """Return how many training steps there is time for, after some that are timed and forgotten."""
        numbers, began = self.numbers, time.monotonic()
        state, total = self.crew.place(state), nothing(algorithm, key, state)

        def take(count: int) -> float:
            started = time.monotonic()
            jax.block_until_ready(run_piece(algorithm, key, state, total, jnp.asarray(0), jnp.asarray(count)))
            return time.monotonic() - started

        take(1)
        compiling = time.monotonic() - began
        each = min(take(numbers.trials) for _ in range(numbers.trials)) / numbers.trials
        # The schedule is part of the program, which is compiled once more for another number of steps.
        left = self.until(numbers.train_until) - time.monotonic() - compiling
        return int(min(max(left / each, numbers.least_steps), numbers.longer * usual))

    def train(self, key: Key[Array, ""], state: State, recipe: Recipe) -> tuple[Parts, LoopResult]:
        """Run the loop on the state's parts, with checkpoints, devices, a progress bar and callbacks."""
        assert state.parts is not None
        training = _Training(self, state.parts)
        watched, (key_steps, key_monitor) = alternating(state.parts), jax.random.split(key)
        fresh, num_steps, start = watched.init(key_steps), state.parts.num_steps, None
        tiles = state.parts.tiles
        if self.memory is not None:
            begin = Position(fresh, nothing(watched, key_steps, fresh))
            start, tiles = self.memory.recall(begin, num_steps) or (None, tiles)
        # Training may end early; many processes might not agree on when.
        weighs = isinstance(recipe.training.main_objective, ExactKL) and jax.process_count() == 1

        seen = {row["step"]: row["efficiency"] for row in start.rows} if start is not None and weighs else {}

        def ends(row: Row) -> Outcome | None:
            seen[row["step"]] = row.get("efficiency", 0.0)
            if learnt([*seen.values()], recipe.judge):
                return Outcome.CONVERGED
            return Outcome.INACCURATE if in_vain(row, num_steps, state.dim, recipe) else None

        newest, look = [fresh], watch(key_monitor, state, recipe, weighs=weighs)

        def monitor(now: Any) -> Row:
            newest[0] = now
            return look(now)

        def observe(row: Row) -> bool:
            bar(row)
            parts, now = training.parts, newest[0]
            return self.tell(
                {"stage": "train", **row},
                lambda: Sampler(parts.latent, averaged(parts, now), state.coordinates),
            )

        patience = Patience(self.numbers.bad_chunks, self.numbers.bad_steps, self.numbers.look_every)
        with progress_bar(state.target.name, num_steps, show=self.show) as bar, self.crew.ears():
            result = run(
                key_steps, training.in_tiles(tiles), fresh,
                num_steps=num_steps, log_every=max(1, num_steps // self.numbers.rows),
                monitor=monitor, observe=observe, ends=ends, keep=training.keep, shrink=training.shrink,
                deadline=self.until(self.numbers.train_until), start=start, crew=self.crew, patience=patience,
            )  # fmt: skip
        if result.at is not None:
            training.keep(result.at, now=True)
        return training.parts, result

    def tell(self, row: dict[str, Any], sampler: Callable[[], Sampler | None]) -> bool:
        """Hand a row to the user's callback; say whether that stops the fit."""
        return self.callback is not None and self.callback(Progress(row, sampler)) is True


class _Training:
    """The parts of a running training, whose batches may have to be cut into tiles."""

    def __init__(self, clock: Clock, parts: Parts):
        self.clock, self.parts = clock, parts

    def in_tiles(self, tiles: int) -> Algorithm:
        """Return the algorithm with batches cut into so many tiles, on all devices."""
        self.parts, crew = dataclasses.replace(self.parts, tiles=tiles), self.clock.crew
        return alternating(dataclasses.replace(crew.place(self.parts), mesh=crew.mesh))

    def shrink(self) -> Algorithm | None:
        """Return the algorithm with its batches cut into twice as many tiles, if they can be."""
        tiles, sizes = 2 * self.parts.tiles, (self.parts.batch_size, self.parts.score_batch_size)
        if tiles > self.clock.numbers.most_tiles or any(size % tiles for size in sizes):
            return None
        warnings.warn(
            f"memory ran out: training goes on with each batch in {tiles} tiles, one after the other.",
            stacklevel=2,
        )
        return self.in_tiles(tiles)

    def keep(self, at: Position, *, now: bool = False) -> None:
        """Write down where the training stands, if it is time."""
        if self.clock.memory is not None:
            self.clock.memory.keep(at, tiles=self.parts.tiles, now=now)
