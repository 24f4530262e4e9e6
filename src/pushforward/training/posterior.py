"""`fit` for posteriors with much data: start at the mode, and let no step pass over all of it.

1. **Centre** in double precision: mode and curvature there make the frame in which training starts.
2. **Exact KL** on minibatches of the posterior expanded at the mode, whose scores have next to no noise.
3. **Weighing** against the full data: nothing is taken on trust from the minibatches.
"""

import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.baselines import laplace
from pushforward.checks import check_choice, check_count, check_key
from pushforward.frame import InFrame
from pushforward.sampler import Sampler
from pushforward.targets import BayesianLogisticRegression, expand
from pushforward.training.alternating import Parts, State, averaged
from pushforward.training.assemble import build_parts
from pushforward.training.fit import Fit
from pushforward.training.loop import LoopResult, Row, run
from pushforward.training.minibatched import minibatched, training_on
from pushforward.training.outcome import FitError, Outcome
from pushforward.training.progress import progress_bar
from pushforward.training.repair import weigh
from pushforward.training.settings import Settings, preset

MUCH_DATA = 20_000
"""Rows from which on this way is the default: with fewer, the teacher's particles can afford all of them."""

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
    monitor: Callable[[Sampler], Row] = lambda sampler: {},
) -> Fit:
    """Train a one-shot sampler of a posterior with much data.

    **Arguments:**

    - `key`, `settings`, `progress`, `throw`: as for `fit`.
    - `data`: how much of the data a step sees.
    - `monitor`: figures of the sampler as it stands, asked for a few times during training.
    """
    check_key(key)
    if not isinstance(target, BayesianLogisticRegression):
        raise TypeError(f"`target` must be a BayesianLogisticRegression; got {type(target).__name__}.")
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

    started = time.monotonic()
    result = _train(key_train, parts, data.rows, target.name, look, progress=progress)
    phases.append({"phase": "train", "seconds": time.monotonic() - started, "outcome": result.outcome.name})
    network, metrics = averaged(parts, result.state), {}
    if settings.objective == "exact_kl" and result.outcome is not Outcome.INTERRUPTED:
        started = time.monotonic()
        weighing = weigh(key_weigh, InFrame(centred, frame), parts.latent, network, WEIGHED)
        metrics = {"efficiency": float(weighing.efficiency)}
        phases.append({"phase": "weigh", "seconds": time.monotonic() - started, **metrics})
    about = {
        "target": target.name,
        "method": settings.method,
        "settings": dataclasses.asdict(settings),
        "data": dataclasses.asdict(data),
        "outcome": result.outcome.name,
        "metrics": metrics,
        "phases": phases,
    }
    sampler = Sampler(parts.latent, network, frame, json.dumps(about))
    done = Fit(sampler, result.outcome, settings, phases, result.rows)
    if result.outcome is Outcome.DIVERGED and throw:
        raise FitError(f"{result.outcome.value}: try a smaller `learning_rate`.", done)
    return done


def _train(
    key: Key[Array, ""],
    parts: Parts,
    rows: int,
    name: str,
    look: Callable[[State], Row],
    *,
    progress: bool,
) -> LoopResult:
    algorithm = minibatched(training_on(parts), parts.target, rows)
    with progress_bar(name, parts.num_steps, show=progress) as observe:
        return run(
            key,
            algorithm,
            algorithm.init(key),
            num_steps=parts.num_steps,
            log_every=max(1, parts.num_steps // LOG_ROWS),
            monitor=look,
            observe=observe,
        )
