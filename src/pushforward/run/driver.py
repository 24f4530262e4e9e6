"""The driver: runs the stages of a method, keeps each state, and hands back the best there is."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
from jaxtyping import Array, Key
from rich.console import Console
from threadpoolctl import threadpool_limits

from pushforward import distributed
from pushforward.base import key_for
from pushforward.programs import came_from_running, in_one_line, is_exhausted
from pushforward.recipe.anneal import first_start
from pushforward.recipe.stages import Stage
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.run.clock import Clock
from pushforward.training.outcome import FitError, Outcome, ended_by


class Driver:
    """A fit in progress. Whatever moment it is stopped at, `state` is the best there is so far."""

    def __init__(self, key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock):
        self.key, self.state, self.recipe, self.clock = key, state, recipe, clock
        self.phases: list[dict[str, Any]] = []  # what ran, for how long, and what it found
        self.stopping = self.ended = False

    def run(self, stages: Sequence[Stage]) -> None:
        """Run all stages; an interrupt ends them with the outcome `INTERRUPTED`, if there is a sampler."""
        can_stop = lambda: self.state.has_sampler or self.state.peaks is not None  # noqa: E731
        try:
            # Small products on the host: threads that wait for each other cost more than they bring.
            with threadpool_limits(1, user_api="blas"), self.clock.alarm(can_stop):
                self._run_all(self._recall(stages))
        except KeyboardInterrupt as asked:
            outcome = ended_by(asked)
            if not self.state.has_sampler:
                if not outcome.cut:
                    raise
                # The normal laws around the peaks, and all between, stand for a law that nobody had time for.
                assert self.state.peaks is not None
                law = first_start(self.state.peaks, self.recipe.annealing)
                self.state = self.state.replace(frame=law.frame, latent=law.latent)
            self._end(outcome)
        except (jax.errors.JaxRuntimeError, RuntimeError, MemoryError, ValueError) as error:
            if not came_from_running(error):
                raise
            outcome = self.clock.crew.blame(error)
            if not self.state.has_sampler:
                raise FitError(f"{outcome.value.partition(';')[0]}: {in_one_line(error)}") from error
            self._end(outcome, in_one_line(error))
        if not self.state.has_sampler:
            raise ValueError("`method`: none of its stages made a sampler. Add one, such as `methods.TRAIN`.")
        steps = 0 if self.state.result is None or self.state.result.at is None else self.state.result.at.step
        if self.state.outcome is Outcome.OUT_OF_TIME and not steps and any(s.together for s in stages):
            self._end(Outcome.UNSTARTED, self.state.why)

    def _run_all(self, stages: Sequence[Stage]) -> None:
        for number, stage in enumerate(stages):
            first = stage.together and not any(before.together for before in stages[:number])
            if first and self.clock.memory is not None and self.recipe.training.frame == "annealed":
                # What the chief has found alone, all processes need from here on.
                self.state = self.clock.memory.share(stage.name, self.state, self.phases)
            if self.state.has_sampler and self.clock.over and not self.clock.crew.many and not self.ended:
                self._end(Outcome.OUT_OF_TIME)
            if not self.ended:
                self._run(stage)

    def _recall(self, stages: Sequence[Stage]) -> Sequence[Stage]:
        """Return the stages that are left to run, after what an earlier run of the same fit has found."""
        memory = self.clock.memory
        found = memory.found(self.state.target) if memory is not None and distributed.is_chief() else None
        if found is None:
            return stages
        self.state, self.phases = found.state, found.phases
        names = [stage.name for stage in stages]
        return stages[names.index(found.stage) + 1 :] if found.stage in names else stages

    def _run(self, stage: Stage) -> None:
        mine = stage.together or distributed.is_chief()
        if not mine or not stage.applies(self.state, self.recipe):
            return
        began_at, show = self.state, self.clock.show and not stage.together
        with self._phase(stage.name) as notes, _status(show=show) as self.clock.observe:
            while True:
                try:
                    self._run_once(stage, notes)
                    break
                except (jax.errors.JaxRuntimeError, MemoryError) as error:
                    if stage.together or not is_exhausted(error) or not self._with_fewer_particles():
                        raise
                    self.state = began_at
        memory, found = self.clock.memory, self.state.draws is not None and not self.state.cut
        if memory is not None and found and not stage.together:
            memory.keep_found(stage.name, self.state, self.phases)

    def _run_once(self, stage: Stage, notes: dict[str, Any]) -> None:
        began = time.monotonic()
        for state in stage.run(key_for(self.key, stage.name), self.state, self.recipe, self.clock):
            notes |= state.notes
            self.state, now = state.replace(notes={}), time.monotonic()
            if stage.together:
                continue
            rounds = state.rounds[-1] if state.rounds else {}
            row = {"stage": stage.name, "seconds": now - began, **rounds}
            # Asked to stop before there is a sampler, the fit ends with the first.
            stop = self.clock.tell(row, lambda now=state: now.sampler() if now.has_sampler else None)
            self.stopping = self.stopping or stop
            if self.stopping and state.has_sampler:
                self._end(Outcome.STOPPED)
                return
            if state.has_sampler and not self.clock.another(now - began, state.next_cost):
                self.state = self.state.replace(cut=True)
                break
            began = now
        if self.state.rounds and not stage.together:
            notes |= {"log_z": self.state.log_z, "rounds": list(self.state.rounds)}
        self.ended = self.ended or self.state.outcome is Outcome.STOPPED

    def _with_fewer_particles(self) -> bool:
        """Halve the particles, if there are enough."""
        numbers = self.recipe.annealing
        fewer = (numbers.num_particles or 0) // 2
        if fewer < numbers.least_on_memory:
            return False
        warnings.warn(f"memory ran out: annealing goes on with {fewer:,} particles.", stacklevel=2)
        self.recipe = self.recipe.replace(annealing={"num_particles": fewer})
        return True

    def _end(self, outcome: Outcome, why: str = "") -> None:
        self.state, self.ended = self.state.replace(outcome=outcome, why=why), True

    @contextmanager
    def _phase(self, name: str) -> Iterator[dict[str, Any]]:
        """Write down what the stage found and how long it took, even if it is cut short."""
        started, notes = time.monotonic(), {}
        try:
            yield notes
        finally:
            self.phases.append({"phase": name, "seconds": time.monotonic() - started, **notes})


@contextmanager
def _status(*, show: bool) -> Iterator[Any]:
    """Yield a function that says what a stage is doing."""
    if not show:
        yield lambda words: None
        return
    with Console(stderr=True).status("starting") as status:
        yield lambda words: status.update(words)
