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
from pushforward.training.outcome import Outcome

Row = dict[str, int | float]
"""One line of history: step, seconds, and the mean of each scalar the steps reported."""

PATIENCE = 3
"""Chunks in a row with most of their steps skipped before the run is called diverged, ..."""

LEAST_PATIENCE = 10
"""... if they hold at least so many steps: in a short run a chunk is a step or two."""


class LoopResult(NamedTuple):
    """Where the loop came out."""

    state: Any
    rows: list[Row]
    outcome: Outcome


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
    # Only arrays can be carried through a loop; what is static in the state does not change.
    arrays, static = eqx.partition(state, eqx.is_array)

    def step(i, arrays):
        new, info = algorithm.step(jax.random.fold_in(key, i), eqx.combine(arrays, static))
        return eqx.filter(new, eqx.is_array), info

    def body(i, carry):
        arrays, info = step(i, carry[0])
        return arrays, jax.tree.map(jnp.add, carry[1], info)

    _, shapes = eqx.filter_eval_shape(step, first, arrays)
    nothing = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)
    arrays, total = jax.lax.fori_loop(first, first + num_steps, body, (arrays, nothing))
    return eqx.combine(arrays, static), jax.tree.map(lambda v: v / num_steps, total)


def run(
    key: Key[Array, ""],
    algorithm: Algorithm,
    state: Any,
    *,
    num_steps: int,
    log_every: int,
    monitor: Callable[[Any], Row] = lambda state: {},
    observe: Callable[[Row], None] = lambda row: None,
    deadline: float = float("inf"),
) -> LoopResult:
    """Run `algorithm` from `state` until the steps, the time or the user's patience is over.

    **Arguments:**

    - `monitor`: extra scalars of the state, asked for once a chunk (a metric of fresh draws, say).
    - `observe`: called with every row; progress bars live here.
    - `deadline`: on `time.monotonic()`'s clock.

    A chunk whose steps were all skipped leaves the state as it was, so the state handed back is always
    finite. An interrupt hands back the state of the last complete chunk.
    """
    rows: list[Row] = []
    started, step, bad_chunks, bad_steps = time.monotonic(), 0, 0, 0
    try:
        while step < num_steps:
            if time.monotonic() >= deadline:
                return LoopResult(state, rows, Outcome.OUT_OF_TIME)
            chunk = min(log_every, num_steps - step)
            new, info = run_chunk(algorithm, key, state, jnp.asarray(step), jnp.asarray(chunk))
            values = {name: float(v) for name, v in jax.device_get(info).items()}
            state, step = new, step + chunk
            row = {"step": step, "seconds": time.monotonic() - started, **values, **monitor(state)}
            rows.append(row)
            observe(row)
            bad = values.get("skipped", 0.0) > 0.5
            bad_chunks, bad_steps = (bad_chunks + 1, bad_steps + chunk) if bad else (0, 0)
            # A run whose last steps were all skipped has not ended well, however short it is.
            hopeless = bad_chunks >= PATIENCE and (bad_steps >= LEAST_PATIENCE or step == num_steps)
            if hopeless or not np.isfinite(values.get("skipped", 0.0)):
                return LoopResult(state, rows, Outcome.DIVERGED)
    except KeyboardInterrupt:
        return LoopResult(state, rows, Outcome.INTERRUPTED)
    return LoopResult(state, rows, Outcome.FINISHED)
