"""The one loop: a compiled chunk of steps, then one look at what came back.

Everything iterative goes through here, so that the finite check, the clock, the history and the ways
to stop exist once. Progress is an observer of the rows; it never has a loop of its own.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from pushforward.base import Algorithm
from pushforward.programs import came_from_running, in_one_line, is_exhausted
from pushforward.training.outcome import Outcome
from pushforward.training.pace import Alone, Pace

Row = dict[str, int | float]
"""One line of history: step, seconds, and the mean of each scalar the steps reported."""


class Patience(NamedTuple):
    """How long steps may be skipped before a run is called diverged, and how often it looks up."""

    chunks: int = 3
    """Chunks in a row with most of their steps skipped, ..."""
    steps: int = 10
    """... if they hold at least so many steps: in a short run a chunk is a step or two."""
    look_every: float = 2.0
    """Seconds between two looks at the clock."""


class Position(NamedTuple):
    """Where a run stands between two steps: all it needs to go on as if it had never stopped."""

    state: Any
    total: dict[str, Any]
    """Sums of the scalars over the steps since the last row."""
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
    why: str = ""
    """What went wrong, in the words of whatever raised it."""
    at: Position | None = None


@eqx.filter_jit
def run_chunk(
    algorithm: Algorithm,
    key: Key[Array, ""],
    state: Any,
    first: Int[Array, ""],
    num_steps: Int[Array, ""] | int,
) -> tuple[Any, dict[str, Array]]:
    """Take `num_steps` steps; step `i` uses `fold_in(key, i)`, so a run can be cut and joined anywhere.

    The number of steps is an argument of the compiled program, so that a shorter last chunk costs nothing.
    """
    state, total = _steps(algorithm, key, state, nothing(algorithm, key, state), first, num_steps)
    return state, jax.tree.map(lambda v: v / num_steps, total)


@eqx.filter_jit
def run_piece(
    algorithm: Algorithm,
    key: Key[Array, ""],
    state: Any,
    total: dict[str, Any],
    first: Int[Array, ""],
    num_steps: Int[Array, ""],
) -> tuple[Any, dict[str, Array]]:
    """Take some steps of a chunk and add what they report to `total`: cut anywhere, the sums are the same."""
    return _steps(algorithm, key, state, total, first, num_steps)


def nothing(algorithm: Algorithm, key: Key[Array, ""], state: Any) -> dict[str, Any]:
    """Return the sums over no steps at all."""
    shapes = eqx.filter_eval_shape(lambda k, s: algorithm.step(k, s)[1], key, state)
    return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)


def _steps(algorithm: Algorithm, key: Any, state: Any, total: Any, first: Any, num_steps: Any) -> Any:
    # Only arrays can be carried through a loop; what is static in the state does not change.
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(i, carry):
        new, info = algorithm.step(jax.random.fold_in(key, i), eqx.combine(carry[0], static))
        return eqx.filter(new, eqx.is_array), jax.tree.map(jnp.add, carry[1], info)

    arrays, total = jax.lax.fori_loop(first, first + num_steps, body, (arrays, total))
    return eqx.combine(arrays, static), total


def run(
    key: Key[Array, ""],
    algorithm: Algorithm,
    state: Any,
    *,
    num_steps: int,
    log_every: int,
    monitor: Callable[[Any], Row] = lambda state: {},
    observe: Callable[[Row], Any] = lambda row: None,
    ends: Callable[[Row], Outcome | None] = lambda row: None,
    deadline: float = float("inf"),
    start: Position | None = None,
    keep: Callable[[Position], None] = lambda position: None,
    shrink: Callable[[], Algorithm | None] = lambda: None,
    crew: Alone | None = None,
    patience: Patience = Patience(),  # noqa: B008 - a NamedTuple does not change
) -> LoopResult:
    """Run `algorithm` from `state` until the steps, the time or the user's patience is over.

    **Arguments:**

    - `monitor`: extra scalars of the state, asked for once a chunk.
    - `observe`: called with every row, for progress bars and callbacks. `True` stops the run.
    - `ends`: says of a row how the run ends there, if it does.
    - `deadline`: on `time.monotonic()`'s clock.
    - `start`: go on from here, and not from `state`; the outcome is that of a run never stopped.
    - `keep`: called every few seconds with where the run stands; checkpoints live here.
    - `shrink`: returns the same algorithm in need of less memory, or `None`; asked when memory ran out.
    - `crew`: agrees with other processes on when to stop and look, where there are any.
    - `patience`: how long steps may be skipped.

    A skipped step leaves the state as it was, so the state handed back is always finite. An interrupt or an
    error hands back the state before it.
    """
    start = start or Position(state, nothing(algorithm, key, state))
    going = _Run(key, algorithm, start, num_steps, log_every, monitor, crew or Alone(), patience)
    if start.rows and (ended := going.ended(ends)):
        return ended
    try:
        while going.at.step < num_steps:
            try:
                stop = going.take_piece(deadline)
            except (RuntimeError, MemoryError, ValueError) as error:
                if not came_from_running(error):
                    raise
                if is_exhausted(error) and (smaller := shrink()) is not None:
                    going.algorithm, going.program = smaller, None
                    continue
                return going.result(going.crew.blame(error), in_one_line(error))
            if stop is not None:
                return going.result(stop)
            if going.at.step == going.end:
                if observe(going.at.rows[-1]) is True and going.at.step < num_steps:
                    return going.ended(ends) or going.result(Outcome.STOPPED)
                if ended := going.ended(ends):
                    return ended
            keep(going.at)
    except KeyboardInterrupt:
        return going.result(Outcome.INTERRUPTED)
    return going.result(Outcome.FINISHED)


class _Run:
    """A run in progress: where it stands, and the program that takes it on."""

    def __init__(
        self,
        key: Key[Array, ""],
        algorithm: Algorithm,
        at: Position,
        num_steps: int,
        log_every: int,
        monitor: Callable[[Any], Row],
        crew: Alone,
        patience: Patience,
    ):
        self.key, self.algorithm, self.program = crew.place(key), algorithm, None
        self.at = at._replace(state=crew.place(at.state), total=crew.place(at.total))
        self.num_steps, self.log_every, self.end = num_steps, log_every, 0
        self.monitor, self.crew, self.patience = monitor, crew, patience
        self.pace, self.newest = Pace(patience.look_every), self.at.state
        self.began, self.early = time.monotonic() - at.seconds, len(at.rows) + 1

    def take_piece(self, deadline: float) -> Outcome | None:
        """Take some steps, and look where a row is due; or return why to take none."""
        at, crew = self.at, self.crew
        self.end = min((at.step // self.log_every + 1) * self.log_every, self.num_steps)
        if self.program is None:
            first = (crew.place(jnp.asarray(number)) for number in (at.step, 1))
            self.program = crew.prepare(run_piece, self.algorithm, self.key, at.state, at.total, *first)
        # Until the first row is made, one of many processes may still compile what looks at it.
        patient, late = len(at.rows) <= self.early, time.monotonic() >= deadline
        piece, stop = crew.agree(self.pace.steps(self.end - at.step), stop=late, patient=patient)
        if stop is not None:
            return stop
        with self.pace:
            numbers = (crew.place(jnp.asarray(number)) for number in (at.step, piece))
            new, total = self.program(self.algorithm, self.key, at.state, at.total, *numbers)
            jax.block_until_ready(total)
        # Good already, even if looking at it fails; where to go on from is before it then.
        self.newest = new
        moved = at._replace(state=new, total=total, step=at.step + piece)
        if moved.step == self.end:
            chunk = self.end - at.step // self.log_every * self.log_every
            moved = _with_row(moved, chunk, self.began, lambda state: self.monitor(crew.back(state)))
            moved = moved._replace(total=crew.place(moved.total))
        self.at = moved._replace(seconds=time.monotonic() - self.began)
        return None

    def ended(self, ends: Callable[[Row], Outcome | None]) -> LoopResult | None:
        """Return how the run ends by its last row, if it does."""
        if _hopeless(self.at, self.num_steps, self.patience):
            return self.result(Outcome.DIVERGED)
        early = None if self.at.step == self.num_steps else ends(self.at.rows[-1])
        return None if early is None else self.result(early)

    def result(self, outcome: Outcome, why: str = "") -> LoopResult:
        """Return where the run came out."""
        here = self.at._replace(state=self.crew.back(self.at.state), total=self.crew.back(self.at.total))
        return LoopResult(self.crew.back(self.newest), list(here.rows), outcome, why, here)


def _with_row(at: Position, chunk: int, began: float, monitor: Callable[[Any], Row]) -> Position:
    """Close a chunk: the means of its steps and what the monitor sees become a row."""
    total = {name: np.asarray(v) for name, v in jax.device_get(at.total).items()}
    values = {name: float(v / v.dtype.type(chunk)) for name, v in total.items()}
    row = {"step": at.step, "seconds": time.monotonic() - began, **values, **monitor(at.state)}
    bad = not values.get("skipped", 0.0) <= 0.5
    return at._replace(
        total={name: jax.device_put(np.zeros_like(v)) for name, v in total.items()},
        rows=(*at.rows, row),
        bad_chunks=at.bad_chunks + 1 if bad else 0,
        bad_steps=at.bad_steps + chunk if bad else 0,
    )


def _hopeless(at: Position, num_steps: int, patience: Patience) -> bool:
    # A run whose last steps were all skipped has not ended well, however short it is.
    enough = at.bad_steps >= patience.steps or at.step == num_steps
    return (at.bad_chunks >= patience.chunks and enough) or not np.isfinite(at.rows[-1].get("skipped", 0.0))
