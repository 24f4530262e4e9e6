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
"""Chunks in a row with most of their steps skipped before the run is called diverged."""


class LoopResult(NamedTuple):
    """Where the loop came out."""

    state: Any
    rows: list[Row]
    outcome: Outcome


@eqx.filter_jit
def run_chunk(
    algorithm: Algorithm, key: Key[Array, ""], state: Any, first: Int[Array, ""], num_steps: int
) -> tuple[Any, dict[str, Array]]:
    """Take `num_steps` steps; step `i` uses `fold_in(key, i)`, so a run can be cut and joined anywhere."""
    # Only arrays can be carried through a scan; what is static in the state does not change.
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(carry, i):
        new, info = algorithm.step(jax.random.fold_in(key, i), eqx.combine(carry, static))
        return eqx.filter(new, eqx.is_array), info

    arrays, info = jax.lax.scan(body, arrays, first + jnp.arange(num_steps))
    return eqx.combine(arrays, static), {name: jnp.mean(v, axis=0) for name, v in info.items()}


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
    started, step, bad_chunks = time.monotonic(), 0, 0
    try:
        while step < num_steps:
            if time.monotonic() >= deadline:
                return LoopResult(state, rows, Outcome.OUT_OF_TIME)
            chunk = min(log_every, num_steps - step)
            new, info = run_chunk(algorithm, key, state, jnp.asarray(step), chunk)
            values = {name: float(v) for name, v in jax.device_get(info).items()}
            state, step = new, step + chunk
            row = {"step": step, "seconds": time.monotonic() - started, **values, **monitor(state)}
            rows.append(row)
            observe(row)
            bad_chunks = bad_chunks + 1 if values.get("skipped", 0.0) > 0.5 else 0
            if bad_chunks >= PATIENCE or not np.isfinite(values.get("skipped", 0.0)):
                return LoopResult(state, rows, Outcome.DIVERGED)
    except KeyboardInterrupt:
        return LoopResult(state, rows, Outcome.INTERRUPTED)
    return LoopResult(state, rows, Outcome.FINISHED)
