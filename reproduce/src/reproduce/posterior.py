"""`fit` for posteriors with much data: start at the mode, and let no step pass over all of it.

1. **Centre** in double precision: mode and curvature there make the frame in which training starts.
2. **Exact KL** on minibatches of the posterior expanded at the mode, whose scores have next to no noise.
3. **Weighing** against the full data: nothing is taken on trust from the minibatches.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Key

from pushforward import Fit, FitError, Recipe, Sampler, Settings, Stage, preset
from pushforward.base import Algorithm, Target
from pushforward.checks import check_choice, check_count, check_key, check_positive
from pushforward.frame import InFrame
from pushforward.frozen import Record
from pushforward.host import generator, log_densities, pulled, sampled
from pushforward.latents import Normal
from pushforward.recipe.state import State
from pushforward.recipe.train import in_short, parts_of
from pushforward.run.checkpoint import Checkpoint
from pushforward.run.clock import Clock
from pushforward.run.driver import Driver
from pushforward.run.identity import identity_of
from pushforward.run.progress import progress_bar
from pushforward.training import Parts, Position, Row, alternating, averaged, run
from pushforward.training.loop import nothing
from pushforward.weights import effective
from reproduce.rivals import laplace
from reproduce.rivals.minibatched import minibatched
from reproduce.targets import BayesianLogisticRegression, expand

WEIGHED = 1024
LOG_ROWS = 20

RECIPE = preset("default").replace(
    latent="normal", network="modulated", num_steps=400, batch_size=128, learning_rate=1e-3,
    forward_weight=0.0, ema=0.99, width=64, depth=2, activation="squareplus",
)  # fmt: skip
"""The default's map and objective; from the Laplace approximation there is less way to go."""


@dataclass(frozen=True, kw_only=True)
class DataPlan(Record):
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
    checkpoint_every: float = 60.0,
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
    seconds = float("inf") if budget is None else check_positive(budget, "budget")
    recipe, plan = Recipe(training=settings), data or DataPlan()
    memory = None
    if checkpoint is not None:
        # Mode and frame are cheap to find again.
        identity = identity_of(key, target, recipe) | {"data": plan.plain()}
        memory = Checkpoint(checkpoint, identity, every=checkpoint_every)
    with nullcontext() if memory is None else closing(memory):
        clock = Clock(recipe, seconds=seconds, memory=memory, show=progress)
        driver = Driver(key, State(target=target), recipe, clock)
        driver.run(_Stages(target, plan, monitor).all)
    state = driver.state
    about = {
        "target": target.name, "method": settings.method, "settings": settings.plain(), "data": plan.plain(),
        "digest": recipe.digest(), "outcome": state.outcome.name, "metrics": state.metrics,
        "phases": driver.phases,
    }  # fmt: skip
    sampler = state.sampler(json.dumps(about), target.parameters)
    rows = [] if state.result is None else state.result.rows
    done = Fit(sampler, state.outcome, recipe, driver.phases, rows, state)
    if throw and state.outcome.broken:
        remedy = state.why or "try a smaller `learning_rate`."
        raise FitError(f"{state.outcome.value}: {remedy} `error.fit.sampler` holds it.", done)
    return done


def _check(target: BayesianLogisticRegression, settings: Settings) -> None:
    if not isinstance(target, BayesianLogisticRegression):
        raise TypeError(f"`target` must be a BayesianLogisticRegression; got {type(target).__name__}.")
    if not isinstance(settings, Settings):
        raise TypeError(
            f"`settings` must be Settings, such as `RECIPE.replace(width=32)`; got {type(settings).__name__}."
        )


def _trained_on(parts: Parts, target: Target) -> Algorithm:
    return alternating(replace(parts, target=target))


def _can_weigh(state: State, recipe: Recipe) -> bool:
    return recipe.training.objective == "exact_kl" and state.outcome.good


class _Stages:
    """The stages of one posterior; what the first finds, the others use."""

    def __init__(self, target: BayesianLogisticRegression, data: DataPlan, monitor: Callable[[Sampler], Row]):
        self.target, self.data, self.monitor = target, data, monitor
        self.all = (
            Stage("centre", lambda state, recipe: True, self._centre),
            Stage("train", lambda state, recipe: True, self._train, together=True),
            Stage("weigh", _can_weigh, self._weigh, together=True),
        )

    def _centre(self, key: Key[Array, ""], state: State, recipe: Recipe, clock: Any) -> Iterator[State]:
        """Find the mode and its curvature: the Laplace approximation is the first sampler."""
        self.peak = self.target.centre()
        seen = expand(self.target, self.peak) if self.data.estimate == "expanded" else self.target
        yield state.replace(target=seen, frame=laplace.frame(self.peak), latent=Normal(self.target.dim))

    def _train(self, key: Key[Array, ""], state: State, recipe: Recipe, clock: Any) -> Iterator[State]:
        """Take the steps that an earlier run has not taken yet, each on a fresh minibatch."""
        key_parts, key_train = jax.random.split(key)
        parts, frame = parts_of(key_parts, state, recipe.training), state.coordinates
        algorithm = minibatched(eqx.Partial(_trained_on, parts), parts.target, self.data.rows)
        fresh, start, memory = algorithm.init(key_train), None, clock.memory
        if memory is not None:
            before = memory.restore(Position(fresh, nothing(algorithm, key_train, fresh)), parts.num_steps)
            start = None if before is None else before[0]
        with progress_bar(self.target.name, parts.num_steps, show=clock.show) as observe:
            result = run(
                key_train,
                algorithm,
                fresh,
                num_steps=parts.num_steps,
                log_every=max(1, parts.num_steps // LOG_ROWS),
                monitor=lambda now: self.monitor(Sampler(parts.latent, averaged(parts, now), frame)),
                observe=observe,
                deadline=clock.until(1.0),
                start=start,
                keep=(lambda at: None) if memory is None else memory.keep,
            )
        if memory is not None and result.at is not None:
            memory.keep(result.at, now=True)
        yield state.replace(
            parts=parts,
            result=result,
            network=averaged(parts, result.state),
            outcome=result.outcome,
            why=result.why,
            notes=in_short(result) | {"seconds": 0.0 if result.at is None else result.at.seconds},
        )

    def _weigh(self, key: Key[Array, ""], state: State, recipe: Recipe, clock: Any) -> Iterator[State]:
        """Weigh draws against all of the data: nothing is taken on trust from the minibatches."""
        assert state.latent is not None
        centred = InFrame(self.target.centred(self.peak), state.coordinates)
        z = sampled(generator(key), state.latent, WEIGHED)
        weights = pulled(centred, state.map, z, WEIGHED) - log_densities(state.latent, z)
        metrics = {"efficiency": effective(weights)}
        yield state.replace(metrics=metrics, notes=metrics)
