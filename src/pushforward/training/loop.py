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
from pushforward.training.pace import Crew, next_stride

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
    algorithm: Algorithm, key: Key[Array, ""], state: Any, first: Int[Array, ""], num_steps: Any
) -> tuple[Any, dict[str, Array]]:
    """Take `num_steps` steps; step `i` uses `fold_in(key, i)`, so a run can be cut and joined anywhere.

    The number of steps is an argument of the compiled program, so that a shorter last chunk costs nothing.
    """
    state, total = run_piece(algorithm, key, state, nothing(algorithm, key, state), first, num_steps)
    return state, jax.tree.map(lambda v: v / num_steps, total)


@eqx.filter_jit
def run_piece(
    algorithm: Algorithm, key: Key[Array, ""], state: Any, total: dict[str, Any], first: Any, num_steps: Any
) -> tuple[Any, dict[str, Array]]:
    """Take some steps of a chunk and add what they report to `total`: cut anywhere, the sums are the same."""
    # Only arrays can be carried through a loop; what is static in the state does not change.
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(i, carry):
        new, info = algorithm.step(jax.random.fold_in(key, i), eqx.combine(carry[0], static))
        return eqx.filter(new, eqx.is_array), jax.tree.map(jnp.add, carry[1], info)

    arrays, total = jax.lax.fori_loop(first, first + num_steps, body, (arrays, total))
    return eqx.combine(arrays, static), total


def nothing(algorithm: Algorithm, key: Key[Array, ""], state: Any) -> dict[str, Any]:
    """Return the sums over no steps at all."""
    shapes = eqx.filter_eval_shape(lambda k, s: algorithm.step(k, s)[1], key, state)
    return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)


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
    crew: Crew | None = None,
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

    A skipped step leaves the state as it was, so the state handed back is always finite. An interrupt or an
    error hands back the state before it.
    """
    start = start or Position(state, nothing(algorithm, key, state))
    going = _Run(key, algorithm, start, num_steps, log_every, monitor, ends, crew or Crew(), patience)
    if start.rows and (ended := going.ended()):
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
                    return going.ended() or going.result(Outcome.STOPPED)
                if ended := going.ended():
                    return ended
            keep(going.at)
    except KeyboardInterrupt:
        return going.result(Outcome.INTERRUPTED)
    return going.result(Outcome.FINISHED)


class _Run:
    """A run in progress: where it stands, and the program that takes it on."""

    def __init__(
        self, key: Any, algorithm: Algorithm, at: Position, num_steps: int, log_every: int,
        monitor: Callable[[Any], Row], ends: Callable[[Row], Outcome | None], crew: Crew, patience: Patience,
    ):  # fmt: skip
        self.key, self.algorithm, self.program = crew.place(key), algorithm, None
        self.at = at._replace(state=crew.place(at.state), total=crew.place(at.total))
        self.num_steps, self.log_every, self.end, self.stride = num_steps, log_every, 0, 1
        self.monitor, self.ends, self.crew, self.patience = monitor, ends, crew, patience
        self.newest = self.at.state
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
        piece, stop = crew.agree(min(self.stride, self.end - at.step), stop=late, patient=patient)
        if stop is not None:
            return stop
        began = time.monotonic()
        numbers = (crew.place(jnp.asarray(number)) for number in (at.step, piece))
        new, total = self.program(self.algorithm, self.key, at.state, at.total, *numbers)
        jax.block_until_ready(total)
        self.stride = next_stride(self.stride, piece, time.monotonic() - began, self.patience.look_every)
        # Good already, even if looking at it fails; where to go on from is before it then.
        self.newest = new
        moved = at._replace(state=new, total=total, step=at.step + piece)
        if moved.step == self.end:
            moved = self.with_row(moved, self.end - at.step // self.log_every * self.log_every)
        self.at = moved._replace(seconds=time.monotonic() - self.began)
        return None

    def with_row(self, at: Position, chunk: int) -> Position:
        """Close a chunk: the means of its steps and what the monitor sees become a row."""
        total = {name: np.asarray(v) for name, v in jax.device_get(at.total).items()}
        values = {name: float(v / v.dtype.type(chunk)) for name, v in total.items()}
        row = {"step": at.step, "seconds": time.monotonic() - self.began, **values}
        row |= self.monitor(self.crew.back(at.state))
        bad = not values.get("skipped", 0.0) <= 0.5
        return at._replace(
            total=self.crew.place({name: jax.device_put(np.zeros_like(v)) for name, v in total.items()}),
            rows=(*at.rows, row),
            bad_chunks=at.bad_chunks + 1 if bad else 0,
            bad_steps=at.bad_steps + chunk if bad else 0,
        )

    def ended(self) -> LoopResult | None:
        """Return how the run ends by its last row, if it does."""
        at, last = self.at, self.at.step == self.num_steps
        # A run whose last steps were all skipped has not ended well, however short it is.
        skipped = at.bad_chunks >= self.patience.chunks and (at.bad_steps >= self.patience.steps or last)
        if skipped or not np.isfinite(at.rows[-1].get("skipped", 0.0)):
            return self.result(Outcome.DIVERGED)
        early = None if last else self.ends(at.rows[-1])
        return None if early is None else self.result(early)

    def result(self, outcome: Outcome, why: str = "") -> LoopResult:
        """Return where the run came out."""
        here = self.at._replace(state=self.crew.back(self.at.state), total=self.crew.back(self.at.total))
        return LoopResult(self.crew.back(self.newest), list(here.rows), outcome, why, here)
