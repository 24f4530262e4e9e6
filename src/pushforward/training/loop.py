"""The one loop: a compiled chunk of steps, then one look at what came back.

Everything iterative goes through here, so that the finite check, the clock, the history and the ways
to stop exist once. Progress is an observer of the rows; it never has a loop of its own.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Algorithm
from pushforward.devices import on_all, on_own
from pushforward.programs import came_from_running, in_one_line, is_exhausted
from pushforward.training.outcome import Outcome, ended_by
from pushforward.training.pace import Crew, zeros_of

Row = dict[str, int | float]
"""One line of history: step, seconds, and the mean of each scalar the steps reported."""


class Position(NamedTuple):
    """Where a run stands between two steps: all it needs to go on as if it had never stopped."""

    state: Any
    total: dict[str, Any]  # sums of the scalars over the steps since the last row
    step: int = 0
    rows: tuple[Row, ...] = ()
    bad_chunks: int = 0
    bad_steps: int = 0
    seconds: float = 0.0


class LoopResult(NamedTuple):
    """Where the loop came out."""

    state: Any
    rows: list[Row]
    outcome: Outcome
    why: str = ""  # what went wrong, in the words of whatever raised it
    at: Position | None = None


def take_steps(
    algorithm: Algorithm, key: Key[Array, ""], state: Any, total: dict[str, Any], first: Any, num_steps: Any
) -> tuple[Any, dict[str, Array]]:
    """Take some steps of a chunk and add what they report to `total`: cut anywhere, the sums are the same.

    Step `i` uses `fold_in(key, i)`. The number of steps is an argument: another one compiles nothing.
    """
    # Only arrays can be carried through a loop; what is static in the state does not change.
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(i, carry):
        new, info = algorithm.step(jax.random.fold_in(key, i), eqx.combine(carry[0], static))
        return eqx.filter(new, eqx.is_array), jax.tree.map(jnp.add, carry[1], info)

    arrays, total = jax.lax.fori_loop(first, first + num_steps, body, (arrays, total))
    return eqx.combine(arrays, static), total


# Its types do not tell of the options of `jax.jit`.
_jit: Any = eqx.filter_jit
# A sampler takes a few hundred steps: what the compiler's last level would save of them, it takes twice.
run_piece = _jit(take_steps, compiler_options={"xla_backend_optimization_level": 1})


def nothing(algorithm: Algorithm, key: Key[Array, ""], state: Any) -> dict[str, Any]:
    """Return the sums over no steps at all."""
    return zeros_of(lambda k, s: algorithm.step(k, s)[1], key, state)


def run(
    key: Key[Array, ""], algorithm: Algorithm, state: Any, *, start: Position | None = None, **options: Any
) -> LoopResult:
    """Run `algorithm` from `state`, or on from `start`, until the steps, the time or patience is over.

    `options` are those of `Loop`. A skipped step leaves the state as it was, so what is handed back is always
    finite. An interrupt or an error hands back the state before it.
    """
    at = Position(state, nothing(algorithm, key, state)) if start is None else start
    return Loop(key, algorithm, at, **options).run()


@dataclass
class Loop:
    """A run in progress: where it stands, the program that takes it on, and who looks at it."""

    key: Key[Array, ""]
    algorithm: Algorithm
    at: Position
    num_steps: int
    log_every: int
    monitor: Callable[[Any], Row] = lambda state: {}  # extra scalars of the state, asked for once a chunk
    observe: Callable[[Row], Any] = lambda row: None  # called with every row; `True` stops the run
    ends: Callable[[Row], Outcome | None] = lambda row: None  # says of a row how the run ends there, if so
    deadline: float = float("inf")  # on `time.monotonic()`'s clock
    keep: Callable[[Position], None] = lambda position: None  # called every few seconds, for checkpoints
    shrink: Callable[[], Algorithm | None] = lambda: None
    """Returns the same algorithm in need of less memory, or `None`; asked when memory ran out."""
    crew: Crew = field(default_factory=Crew)
    bad_chunks: int = 3
    """Chunks in a row with most of their steps skipped, after which the run is called diverged, ..."""
    bad_steps: int = 10
    """... if they hold at least so many steps: in a short run a chunk is a step or two."""
    look_every: float = 2.0  # seconds between two looks at the clock

    def __post_init__(self):
        mesh = self.crew.mesh
        self.key, state, total = on_all((self.key, self.at.state, self.at.total), mesh)
        self.at = self.at._replace(state=state, total=total)
        self.program, self.stride, self.newest, self.why = None, 1, self.at.state, ""
        self.began, self.early = time.monotonic() - self.at.seconds, len(self.at.rows) + 1

    def run(self) -> LoopResult:
        """Take pieces until the run ends."""
        outcome = self.ended() if self.at.rows else None
        try:
            while outcome is None and self.at.step < self.num_steps:
                outcome = self.take_piece()
                if outcome is None:
                    self.keep(self.at)
        except KeyboardInterrupt as asked:
            outcome = ended_by(asked)
        newest, state, total = on_own((self.newest, self.at.state, self.at.total), self.crew.mesh)
        here = self.at._replace(state=state, total=total)
        return LoopResult(newest, list(here.rows), outcome or Outcome.FINISHED, self.why, here)

    def take_piece(self) -> Outcome | None:
        """Take some steps, and look where a row is due; return how the run ends there, if it does."""
        at = self.at
        begin = at.step // self.log_every * self.log_every
        end = min(begin + self.log_every, self.num_steps)
        try:
            # Until the first row is made, one of many processes may still compile what looks at it.
            patient, late = len(at.rows) <= self.early, time.monotonic() >= self.deadline
            if self.program is None:
                self.program = self.crew.prepare(run_piece, *self.arguments(1))
            piece, stop = self.crew.agree(min(self.stride, end - at.step), stop=late, patient=patient)
            if stop is not None:
                return stop
            moved = self.moved(piece)
            if moved.step == end:
                moved = self.with_row(moved, end - begin)
        except (RuntimeError, MemoryError, ValueError) as error:
            if not came_from_running(error):
                raise
            if is_exhausted(error) and (smaller := self.shrink()) is not None:
                self.algorithm, self.program = smaller, None
                return None
            self.why = in_one_line(error)
            return self.crew.blame(error)
        self.at = moved._replace(seconds=time.monotonic() - self.began)
        if moved.step < end:
            return None
        stopped = self.observe(moved.rows[-1]) is True and end < self.num_steps
        return self.ended() or (Outcome.STOPPED if stopped else None)

    def arguments(self, piece: int) -> tuple[Any, ...]:
        """Return what the program takes for a piece of so many steps."""
        numbers = on_all((jnp.asarray(self.at.step), jnp.asarray(piece)), self.crew.mesh)
        return self.algorithm, self.key, self.at.state, self.at.total, *numbers

    def moved(self, piece: int) -> Position:
        """Take so many steps, and set how many to take next: twice as many while they are quick."""
        assert self.program is not None
        began = time.monotonic()
        state, total = self.program(*self.arguments(piece))
        jax.block_until_ready(total)
        seconds = time.monotonic() - began
        if seconds > self.look_every:
            self.stride = max(1, piece // 2)
        elif piece == self.stride and seconds < self.look_every / 2:
            self.stride *= 2
        # Good already, even if looking at it fails; where to go on from is before it then.
        self.newest = state
        return self.at._replace(state=state, total=total, step=self.at.step + piece)

    def with_row(self, at: Position, chunk: int) -> Position:
        """Close a chunk: the means of its steps and what the monitor sees become a row."""
        total = {name: np.asarray(v) for name, v in jax.device_get(at.total).items()}
        values = {name: float(v / v.dtype.type(chunk)) for name, v in total.items()}
        row = {"step": at.step, "seconds": time.monotonic() - self.began, **values}
        row |= self.monitor(on_own(at.state, self.crew.mesh))
        bad = not values.get("skipped", 0.0) <= 0.5
        none = jax.device_put({name: np.zeros_like(v) for name, v in total.items()})
        at = at._replace(total=on_all(none, self.crew.mesh), rows=(*at.rows, row))
        bad_chunks, bad_steps = (at.bad_chunks + 1, at.bad_steps + chunk) if bad else (0, 0)
        return at._replace(bad_chunks=bad_chunks, bad_steps=bad_steps)

    def ended(self) -> Outcome | None:
        """Return how the run ends by its last row, if it does."""
        at, last = self.at, self.at.step == self.num_steps
        # A run whose last steps were all skipped has not ended well, however short it is.
        skipped = at.bad_chunks >= self.bad_chunks and (at.bad_steps >= self.bad_steps or last)
        if skipped or not np.isfinite(at.rows[-1].get("skipped", 0.0)):
            return Outcome.DIVERGED
        return None if last else self.ends(at.rows[-1])
