"""`fit` for posteriors with much data: start at the mode, and let no step pass over all of it.

1. **Centre** in double precision: mode and curvature there make the frame in which training starts.
2. **Exact KL** on minibatches of the posterior expanded at the mode, whose scores have next to no noise.
3. **Weighing** against the full data: nothing is taken on trust from the minibatches.
"""

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array, Key
from pushforward.training.assemble import build_parts
from pushforward.training.checkpoint import EVERY, Checkpoint
from pushforward.training.fit import Fit
from pushforward.training.identity import identity_of
from pushforward.training.progress import progress_bar
from pushforward.training.repair import weigh
from pushforward.training.settings import Settings, preset

from pushforward.base import Target
from pushforward.checks import check_choice, check_count, check_key, check_positive
from pushforward.frame import InFrame
from pushforward.sampler import Sampler
from pushforward.training.alternating import Parts, State, averaged
from pushforward.training.loop import LoopResult, Position, Row, nothing, run
from pushforward.training.outcome import FitError
from reproduce.minibatched import minibatched, training_on
from reproduce.rivals import laplace
from reproduce.targets import BayesianLogisticRegression, expand

WEIGHED = 1024
LOG_ROWS = 20

RECIPE = preset("default").replace(
    latent="normal", num_steps=400, batch_size=128, forward_weight=0.0, ema=0.99, width=64, depth=2,
)  # fmt: skip
"""The default's map and objective; from the Laplace approximation there is less way to go."""


@dataclass(frozen=True, kw_only=True)
class DataPlan:
    """How much data a step sees: `rows` at a time.

    `estimate`: `expanded` at the mode, or `plain`, whose noise is `sqrt(n / rows)` times the score itself.
    """

    rows: int = 2000
    estimate: str = "expanded"

    def __post_init__(self):
        check_count(self.rows, "rows")
        check_choice(self.estimate, "estimate", ("expanded", "plain"))


def fit_posterior(
    key: Key[Array, ""],
    target: BayesianLogisticRegression,
    *,
    settings: Settings = RECIPE,
    data: DataPlan | None = None,
    progress: bool = True,
    throw: bool = True,
    budget: float | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = EVERY,
    monitor: Callable[[Sampler], Row] = lambda sampler: {},
) -> Fit:
    """Train a one-shot sampler of a posterior with much data.

    **Arguments:**

    - `key`, `settings`, `progress`, `throw`, `budget`, `checkpoint`, `checkpoint_every`: as for `fit`.
    - `data`: how much of the data a step sees.
    - `monitor`: figures of the sampler as it stands, asked for a few times during training.
    """
    check_key(key)
    _check(target, settings)
    deadline = float("inf") if budget is None else time.monotonic() + check_positive(budget, "budget")
    data, phases = data or DataPlan(), []
    key_parts, key_train, key_weigh = jax.random.split(key, 3)

    started = time.monotonic()
    peak = target.centre()
    centred, frame = target.centred(peak), laplace.frame(peak)
    seen: Target = expand(target, peak) if data.estimate == "expanded" else target
    phases.append({"phase": "centre", "seconds": time.monotonic() - started})

    parts = build_parts(key_parts, InFrame(seen, frame), settings, mixture=None, draws=None)

    def look(state: State) -> Row:
        return monitor(Sampler(parts.latent, averaged(parts, state), frame))

    with _memory(key, target, settings, data, checkpoint, checkpoint_every) as memory:
        result = _train(
            key_train, parts, data.rows, look, memory, deadline=deadline, name=target.name, progress=progress
        )
    seconds = result.at.seconds if result.at is not None else 0.0
    phases.append({"phase": "train", "seconds": seconds, "outcome": result.outcome.name})
    network, metrics = averaged(parts, result.state), {}
    if settings.objective == "exact_kl" and result.outcome.good:
        started = time.monotonic()
        weighing = weigh(key_weigh, InFrame(centred, frame), parts.latent, network, WEIGHED)
        metrics = {"efficiency": float(weighing.efficiency)}
        phases.append({"phase": "weigh", "seconds": time.monotonic() - started, **metrics})
    found = {"outcome": result.outcome.name, "metrics": metrics, "phases": phases}
    about = _about(target, settings, data) | found
    sampler = Sampler(parts.latent, network, frame, json.dumps(about), target.parameters)
    done = Fit(sampler, result.outcome, settings, phases, result.rows)
    if throw and result.outcome.broken:
        remedy = result.why or "try a smaller `learning_rate`."
        raise FitError(f"{result.outcome.value}: {remedy} `error.fit.sampler` holds it.", done)
    return done


def _check(target: BayesianLogisticRegression, settings: Settings) -> None:
    if not isinstance(target, BayesianLogisticRegression):
        raise TypeError(f"`target` must be a BayesianLogisticRegression; got {type(target).__name__}.")
    if not isinstance(settings, Settings):
        raise TypeError(
            f"`settings` must be Settings, such as `RECIPE.replace(width=32)`; got {type(settings).__name__}."
        )


def _about(target: Target, settings: Settings, data: DataPlan) -> dict[str, Any]:
    """Return what was asked, as the sampler's file tells it."""
    return {
        "target": target.name,
        "method": settings.method,
        "settings": dataclasses.asdict(settings),
        "data": dataclasses.asdict(data),
    }


@contextmanager
def _memory(
    key: Key[Array, ""],
    target: BayesianLogisticRegression,
    settings: Settings,
    data: DataPlan,
    folder: str | os.PathLike | None,
    every: float,
) -> Iterator[Checkpoint | None]:
    """Yield the fit's memory outside the process, if it has one; mode and frame are cheap to find again."""
    if folder is None:
        yield None
        return
    identity = identity_of(key, target, settings, log_every=_log_every(settings.num_steps))
    memory = Checkpoint(folder, identity | {"data": dataclasses.asdict(data)}, every=every)
    try:
        yield memory
    finally:
        memory.close()


def _log_every(num_steps: int) -> int:
    return max(1, num_steps // LOG_ROWS)


def _train(
    key: Key[Array, ""],
    parts: Parts,
    rows: int,
    look: Callable[[State], Row],
    memory: Checkpoint | None,
    *,
    deadline: float,
    name: str,
    progress: bool,
) -> LoopResult:
    """Take the steps that an earlier run has not taken yet."""
    algorithm = minibatched(training_on(parts), parts.target, rows)
    fresh, start = algorithm.init(key), None
    if memory is not None:
        before = memory.restore(Position(fresh, nothing(algorithm, key, fresh)), parts.num_steps)
        start = None if before is None else before[0]
    with progress_bar(name, parts.num_steps, show=progress) as observe:
        result = run(
            key,
            algorithm,
            fresh,
            num_steps=parts.num_steps,
            log_every=_log_every(parts.num_steps),
            monitor=look,
            observe=observe,
            deadline=deadline,
            start=start,
            keep=(lambda at: None) if memory is None else memory.keep,
        )
    if memory is not None and result.at is not None:
        memory.keep(result.at, now=True)
    return result
