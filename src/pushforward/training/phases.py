"""The phases of a fit, in order, and what there is to hand back after each of them."""

import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
from jaxtyping import Array, Key
from rich.console import Console

from pushforward.base import Algorithm, Target
from pushforward.failures import came_from_running
from pushforward.frame import Frame, InFrame
from pushforward.networks import untouched
from pushforward.training.alternating import Parts, State, alternating, averaged
from pushforward.training.assemble import build_parts
from pushforward.training.budget import TRAINING, WALKING, Budget
from pushforward.training.checkpoint import Checkpoint
from pushforward.training.lesson import Lesson
from pushforward.training.loop import LoopResult, Position, Row, in_one_line, nothing, run
from pushforward.training.mending import mended
from pushforward.training.outcome import FitError, Outcome
from pushforward.training.pace import Alone, Crew
from pushforward.training.progress import progress_bar
from pushforward.training.recall import keep_lesson, lessons, recalled_lesson, recalled_position
from pushforward.training.settings import Settings
from pushforward.training.spread import batch_mesh
from pushforward.training.teacher import learn
from pushforward.training.watching import LEARNT, in_vain, learnt, watch

LOG_ROWS = 40
"""Rows of history in a run: often enough to see it move, seldom enough to cost nothing."""

UNREPAIRED = (Outcome.INTERRUPTED, Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.LOST_PROCESS)
"""Outcomes after which the target had better not be asked again."""

MOST_TILES = 2**10

SKIP_FROM = 4
"""Dimensions from which on a lesson may be so good that training is cut short, or does harm."""


class Work:
    """A fit in progress. Whatever moment it is stopped at, `hand_back` returns the best there is so far."""

    def __init__(
        self,
        key: Key[Array, ""],
        target: Target,
        settings: Settings,
        *,
        progress: bool,
        checkpoint: Checkpoint | None = None,
        budget: Budget | None = None,
        crew: Alone | None = None,
    ):
        self.target, self.settings, self.progress = target, settings, progress
        self.checkpoint, self.budget = checkpoint, budget or Budget()
        # All devices there are share the batches.
        self.crew = crew or (Alone if jax.process_count() == 1 else Crew)(batch_mesh())
        keys = jax.random.split(key, 5)
        self.key_check, self.key_teacher, self.key_parts, self.key_train, self.key_repair = keys
        self.phases: list[dict[str, Any]] = []
        self.lesson: Lesson | None = None
        self.parts: Parts | None = None
        self.result: LoopResult | None = None
        self.metrics: dict[str, float] = {}
        self.reverted = False
        """Whether the sampler is not the one that the last rows of the history tell of."""

    def run(self) -> None:
        """Run all phases; an interrupt ends them with the outcome `INTERRUPTED`, if anything was learnt."""
        try:
            self.teach()
            self.build()
            self.train()
            self.repair()
        except KeyboardInterrupt:
            if self.lesson is None and self.result is None:
                raise
            if self.parts is None:
                self.build()
            self._end(Outcome.INTERRUPTED)
        except (jax.errors.JaxRuntimeError, MemoryError, ValueError) as error:
            if not came_from_running(error):
                raise
            outcome = self.crew.blame(error)
            if self.parts is None:
                raise FitError(f"{outcome.value.partition(';')[0]}: {in_one_line(error)}") from error
            self._end(outcome, in_one_line(error))

    def _end(self, outcome: Outcome, why: str = "") -> None:
        before = self.result or self._untrained()
        self.result = before._replace(outcome=outcome, why=why)

    @property
    def frame(self) -> Frame:
        """The coordinates in which the network works."""
        return Frame.identity(self.target.dim) if self.lesson is None else self.lesson.frame

    def teach(self) -> None:
        """Learn where the mass lies; after every round there is a lesson to fall back upon."""
        if self.settings.frame == "identity":
            return
        before = recalled_lesson(self.checkpoint)
        with self._phase("teacher") as found, _status(show=self.progress) as observe:
            if before is not None:
                self.lesson, found["seconds"] = before
            else:
                started = began = time.monotonic()
                whole, words = True, {"num_particles": self.budget.particles(self.target), "observe": observe}
                for lesson in lessons(learn, self.key_teacher, self.target, **words):
                    self.lesson, now = lesson, time.monotonic()
                    whole = self.budget.another_round(now - began, lesson.ahead)
                    if not whole:
                        break
                    began = now
                assert self.lesson is not None
                keep_lesson(self.checkpoint, self.lesson, time.monotonic() - started, whole=whole)
            found |= {"log_z": self.lesson.log_z, "rounds": self.lesson.rounds}

    def build(self) -> None:
        """Make the network and all that trains it."""
        framed, lesson = InFrame(self.target, self.frame), self.lesson
        words = ("mixture", "draws", "network")
        taught = {word: None if lesson is None else getattr(lesson, word) for word in words}
        self.parts = build_parts(self.key_parts, framed, self.settings, **taught)
        if self._nothing_to_learn():
            # Nothing will move it, so the least there is will do.
            self.parts = dataclasses.replace(self.parts, network=untouched(self.target.dim))

    def _plan(self) -> None:
        """Choose the number of steps by the clock, and build anew for it."""
        assert self.parts is not None
        with self._phase("plan") as found:
            state = self.crew.place(alternating(self.parts).init(self.key_train))
            algorithm = self._in_tiles(self.parts.tiles)
            found["steps"] = self.budget.steps(self.key_train, algorithm, state, self.settings.num_steps)
            self.settings = self.settings.replace(num_steps=found["steps"])
            self.build()

    def train(self, monitor: Callable[[State], Row] | None = None, num_rows: int = LOG_ROWS) -> None:
        """Train the network, step by step; `monitor` looks at it `num_rows` times."""
        assert self.parts is not None
        if self._nothing_to_learn():
            with self._phase("train") as found:
                self.result = self._untrained()._replace(outcome=Outcome.FINISHED)
                found |= _in_short(self.result)
            return
        if self.budget.plans:
            self._plan()
        num_steps, tiles = self.parts.num_steps, self.parts.tiles
        watched, (key_steps, key_monitor) = alternating(self.parts), jax.random.split(self.key_train)
        start, fresh = None, watched.init(key_steps)
        if self.checkpoint is not None:
            begin = Position(fresh, nothing(watched, key_steps, fresh))
            start, tiles = recalled_position(self.checkpoint, begin, num_steps) or (None, tiles)

        def keep(at: Position, *, now: bool = False) -> None:
            assert self.parts is not None
            if self.checkpoint is not None:
                self.checkpoint.keep(at, tiles=self.parts.tiles, now=now)

        taught = self.lesson if self.settings.method == "default" else None
        look = watch(
            key_monitor,
            self.target,
            self.frame,
            self.parts,
            watched.sample,
            weighs=self._weighs(),
            taught=None if taught is None else taught.draws,
        )
        with (
            self._phase("train") as found,
            progress_bar(self.target.name, num_steps, show=self.progress) as observe,
            self.crew,
        ):
            self.result = run(
                key_steps,
                self._in_tiles(tiles),
                fresh,
                num_steps=num_steps,
                log_every=max(1, num_steps // num_rows),
                monitor=monitor or look,
                observe=observe,
                enough=learnt,
                in_vain=lambda row: in_vain(row, num_steps, self.target.dim),
                deadline=self.budget.until(TRAINING),
                start=start,
                keep=keep,
                shrink=self._shrink,
                crew=self.crew,
            )
            found |= _in_short(self.result)
            if start is not None and self.result.at is not None:
                found["seconds"] = self.result.at.seconds
        if self.result.at is not None:
            keep(self.result.at, now=True)

    def _nothing_to_learn(self) -> bool:
        """Whether the lesson is the target already, by the weights of its own draws."""
        if self.settings.method != "default" or self.target.dim < SKIP_FROM or self.lesson is None:
            return False
        return self.lesson.network is None and self.lesson.rounds[-1].get("efficiency", 0.0) > LEARNT

    def _weighs(self) -> bool:
        """Whether training may stop early: many processes might not agree on when."""
        known = self.settings.objective == "exact_kl" and jax.process_count() == 1
        return known and (self.budget.plans or self.target.dim >= SKIP_FROM)

    def _shrink(self) -> Algorithm | None:
        """Return the algorithm with its batches cut into twice as many tiles, if they can be."""
        assert self.parts is not None
        tiles, parts = 2 * self.parts.tiles, self.parts
        if tiles > MOST_TILES or parts.batch_size % tiles or parts.score_batch_size % tiles:
            return None
        warnings.warn(
            f"memory ran out: training goes on with each batch in {tiles} tiles, one after the other.",
            stacklevel=2,
        )
        return self._in_tiles(tiles)

    def _in_tiles(self, tiles: int) -> Algorithm:
        assert self.parts is not None
        if tiles != self.parts.tiles:
            self.parts = dataclasses.replace(self.parts, tiles=tiles)
        mesh = self.crew.mesh
        shared = self.parts if mesh is None else dataclasses.replace(self.crew.place(self.parts), mesh=mesh)
        return alternating(shared)

    def repair(self) -> None:
        """Put the sampler right where its density is known, and say how near it came."""
        assert self.parts is not None
        assert self.result is not None
        if self.settings.objective != "exact_kl" or self.result.outcome in UNREPAIRED:
            return
        with self._phase("repair") as found:
            trained = averaged(self.parts, self.result.state)
            # Where the teacher left next to nothing to mend, training may cost more than it mends; and it
            # may run away, far out in a heavy tail, from a start that was good.
            safe = self.target.dim >= SKIP_FROM or self.settings.method == "default"
            may_revert = safe and not self._nothing_to_learn()
            # What can go on later is not given up yet, nor is a method that was asked for by name.
            whole = self._came_to_an_end() and not self._is_cut()
            choices = {
                "may_revert": may_revert,
                "may_scatter": whole and self.settings.method == "default",
            }
            # What only cuts must not change what comes out.
            end = self.budget.until(WALKING) if self.budget.plans else float("inf")
            done = mended(self.key_repair, self.parts, trained, self.lesson, deadline=end, **choices)
            self.reverted = done.reverted
            if done.reverted:
                state = alternating(done.parts).init(self.key_train)
                self.result = self.result._replace(state=state)
            self.parts = done.parts
            self.metrics = done.metrics
            found |= done.found
            if done.reverted and self.result.outcome is Outcome.DIVERGED:
                self._end(Outcome.UNTRAINED)
            if self._came_to_an_end():
                poor = Outcome.OUT_OF_TIME if self._is_cut() else Outcome.INACCURATE
                if done.why:
                    self._end(poor, done.why)
                elif self.result.outcome is Outcome.INACCURATE:
                    # Training was given up, as its phase says, but what there is weighs well.
                    self._end(Outcome.FINISHED)

    def _came_to_an_end(self) -> bool:
        """Whether training did all it was to do, or was given up as in vain."""
        assert self.result is not None
        return self.result.outcome.good or self.result.outcome is Outcome.INACCURATE

    def _is_cut(self) -> bool:
        """Whether time ended a run that the same call may take up again."""
        assert self.result is not None
        return self.result.outcome is Outcome.OUT_OF_TIME and not self.budget.plans

    def hand_back(self) -> tuple[Parts, Any, LoopResult]:
        """Return the parts, the averaged network and where training came out."""
        assert self.parts is not None
        assert self.result is not None
        return self.parts, averaged(self.parts, self.result.state), self.result

    def _untrained(self) -> LoopResult:
        assert self.parts is not None
        state = alternating(self.parts).init(self.key_train)
        return LoopResult(state, [], Outcome.INTERRUPTED)

    @contextmanager
    def _phase(self, name: str) -> Iterator[dict[str, Any]]:
        """Write down what the phase found and how long it took, even if it is cut short."""
        started, found = time.monotonic(), {}
        try:
            yield found
        finally:
            self.phases.append({"phase": name, "seconds": time.monotonic() - started, **found})


@contextmanager
def _status(*, show: bool) -> Iterator[Any]:
    """Yield a function that says what the teacher is doing."""
    if not show:
        yield lambda words: None
        return
    with Console(stderr=True).status("teacher") as status:
        yield lambda words: status.update(f"teacher: {words}")


def _in_short(result: LoopResult) -> dict[str, Any]:
    skipped = sum(row["skipped"] for row in result.rows) / max(len(result.rows), 1)
    steps = result.rows[-1]["step"] if result.rows else 0
    return {"steps": steps, "skipped": skipped, "outcome": result.outcome.name}
