"""`fit`: from a target to a sampler, in phases that say what they did."""

import dataclasses
import json
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward import distributed
from pushforward._cache import let_programs_go
from pushforward.base import Target
from pushforward.checks import check_count, check_duration, check_key
from pushforward.one_by_one import one_by_one
from pushforward.sampler import Sampler
from pushforward.training.budget import Budget
from pushforward.training.checkpoint import EVERY, Checkpoint
from pushforward.training.effort import operations
from pushforward.training.identity import identity_of
from pushforward.training.loop import LoopResult, Row
from pushforward.training.outcome import FitError, Outcome
from pushforward.training.phases import LOG_ROWS, Work
from pushforward.training.preflight import check_target
from pushforward.training.settings import PRESETS, Settings, preset

FEW_DIMENSIONS, SOME_DIMENSIONS, MANY_DIMENSIONS = 3, 32, 100
"""Up to the first, the default's map is free and its entropy found by tangents; from there on it is one that
cannot fold, and beyond the second its batches are smaller, beyond the third again."""

ONE_DERIVATIVE = ("exact_kl", "kl")
"""Objectives that differentiate the log density once."""

BATCH_WORK, SMALLEST_BATCH = 1.5e8, 128
"""Operations that looking once at a batch of the default may take, and how small a batch may become."""


@dataclass(frozen=True)
class Fit:
    """What `fit` hands back."""

    sampler: Sampler
    outcome: Outcome
    settings: Settings
    phases: list[dict[str, Any]]
    """What ran, for how long, and what it found."""
    history: list[Row]
    """Rows of the training loop: step, seconds, losses, KSD."""

    @property
    def seconds(self) -> float:
        """Wall-clock time of all phases."""
        return sum(phase["seconds"] for phase in self.phases)

    def __repr__(self) -> str:
        about = self.sampler.about
        return (
            f"Fit({about['target']}, method={self.settings.method}, {self.outcome.name.lower()}: "
            f"{self.outcome.value}; {self.seconds:.0f} s)"
        )


def fit(
    key: Key[Array, ""],
    target: Target,
    *,
    method: str | None = None,
    settings: Settings | None = None,
    steps: int | None = None,
    progress: bool = True,
    throw: bool = True,
    budget: float | str | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = EVERY,
) -> Fit:
    """Train a one-shot sampler of `target`.

    **Arguments:**

    - `key`: a typed key; the same key and settings give the same sampler.
    - `target`: what to sample; `Target.from_log_density(fn, dim=...)` makes one of a function.
    - `method`: `default` (what works, and what nothing said means), or one of the paper's: `kl`, `fisher`,
        `combined`, ...
    - `settings`: instead of a method, all of its choices: `preset("kl", width=128)`.
    - `steps`: training steps, in place of the method's.
    - `progress`: show a progress bar on standard error.
    - `throw`: raise `FitError` when training goes wrong, and warn when the sampler is `INACCURATE` by its own
        account; otherwise hand back the last good sampler, and say so in the outcome alone.
    - `budget`: a time such as `"5m"`, or seconds. The phases are planned to fit: as many particles, rounds
        and steps as there is time for on this machine. Where steps are given, or a
        `checkpoint`, nothing is planned: the fit is the one without a budget, cut when time is over, with
        the outcome `OUT_OF_TIME` and the sampler so far.
    - `checkpoint`: a folder in which the fit writes down where it stands every `checkpoint_every` seconds.
        Stopped or killed at any moment, the same call goes on from there, to the very same sampler.

    Ctrl-C hands back the last good sampler, with the outcome `INTERRUPTED`. Before the teacher's first round
    is over there is none, and the interrupt is raised.
    """
    check_key(key)
    # A process may fit any number of targets, one after the other.
    let_programs_go()
    told = steps is not None or (settings is not None and not _usual_steps(settings))
    settings = _for_dimension(_chosen(method, settings, steps), target)
    allowed = Budget()
    if budget is not None:
        # What can go on later, or has been told how far to go, is cut and not planned.
        plans = not (told or checkpoint is not None or jax.process_count() > 1)
        allowed = Budget(time.monotonic(), check_duration(budget, "budget"), plans)
    work = Work(key, target, settings, progress=progress and distributed.is_chief(), budget=allowed)
    check_target(work.key_check, target)
    settings = work.settings = _affordable(settings, target)
    if settings.objective in ONE_DERIVATIVE:
        work.target = one_by_one(target)
    with _memory(key, target, settings, checkpoint, checkpoint_every) as work.checkpoint:
        work.run()
    parts, network, result = work.hand_back()
    settings = work.settings
    about = {
        "target": target.name,
        "method": settings.method,
        "settings": dataclasses.asdict(settings),
        "outcome": result.outcome.name,
        "metrics": {**({} if work.reverted else _last(result.rows)), **work.metrics},
        "phases": work.phases,
        **({"why": result.why} if result.why else {}),
    }
    sampler = Sampler(parts.latent, network, work.frame, json.dumps(_plain(about)), target.parameters)
    done = Fit(sampler, result.outcome, settings, work.phases, result.rows)
    if throw and result.why and not result.outcome.broken:
        warnings.warn(
            f"{result.outcome.value}: {result.why} Use `check` before believing it, `refine` its draws, or "
            "train for longer.",
            stacklevel=2,
        )
    if throw and result.outcome.broken:
        diverged = result.outcome is Outcome.DIVERGED
        raise FitError((_why_diverged if diverged else _why)(work.key_check, target, sampler, result), done)
    return done


@contextmanager
def _memory(
    key: Key[Array, ""], target: Target, settings: Settings, folder: Any, every: float
) -> Iterator[Checkpoint | None]:
    """Yield the fit's memory outside the process, if it has one.

    Of many processes the chief alone writes; the others have a folder for what it hands to them.
    """
    many, chief = jax.process_count() > 1, distributed.is_chief()
    if folder is None and not many:
        yield None
        return
    identity = identity_of(key, target, settings, log_every=max(1, settings.num_steps // LOG_ROWS))
    with tempfile.TemporaryDirectory() as passing:
        here = folder if folder is not None and chief else passing
        memory = Checkpoint(here, identity, every=every, writes=chief)
        try:
            yield memory
        finally:
            memory.close()


def _chosen(method: str | None, settings: Settings | None, steps: int | None) -> Settings:
    """Return the settings of a method, or those given in its place."""
    if settings is None:
        settings = preset("default" if method is None else method)
    elif not isinstance(settings, Settings):
        raise TypeError(
            f"`settings` must be Settings, such as `preset('kl', width=128)`; got {type(settings).__name__}."
        )
    elif method is not None and method != settings.method:
        raise ValueError(
            f"`method` is {method!r} but `settings` are those of {settings.method!r}. Give one of the two; "
            f"`preset({method!r}, ...)` makes settings of a method."
        )
    return settings if steps is None else settings.replace(num_steps=check_count(steps, "steps"))


def _usual_steps(settings: Settings) -> bool:
    """Whether the number of steps is the method's own."""
    method = getattr(settings, "method", "")
    return method in PRESETS and settings.num_steps == PRESETS[method].num_steps


def _for_dimension(settings: Settings, target: Target) -> Settings:
    """In more than a few dimensions a free map folds on the way, where its density is infinite."""
    dim = getattr(target, "dim", 0)
    if settings.method != "default" or dim <= FEW_DIMENSIONS:
        return settings
    smaller = 1 if dim <= SOME_DIMENSIONS else 2 if dim <= MANY_DIMENSIONS else 4
    return settings.replace(
        network="coupled",
        depth=2,
        activation="silu",
        learning_rate=5e-4,
        batch_size=settings.batch_size // smaller,
    )


def _affordable(settings: Settings, target: Target) -> Settings:
    """Where each call of the target is much work, the default has smaller batches."""
    if settings.method != "default":
        return settings
    affordable = 2 ** int(np.log2(max(BATCH_WORK / operations(target), SMALLEST_BATCH)))
    return settings.replace(batch_size=min(settings.batch_size, affordable))


def _why(key: Key[Array, ""], target: Target, sampler: Sampler, result: LoopResult) -> str:
    """Say what was raised, without asking the target again."""
    del key, target, sampler
    step = result.rows[-1]["step"] if result.rows else 0
    return f"{result.outcome.value} (after step {step}): {result.why} `error.fit.sampler` holds it."


def _why_diverged(key: Key[Array, ""], target: Target, sampler: Sampler, result: LoopResult) -> str:
    """Name the coordinates in which the target broke at the last finite sampler's draws."""
    x = sampler.sample(key, 1024)
    values = np.asarray(jax.vmap(target.log_density)(x))
    scores = np.asarray(jax.vmap(target.score)(x))
    coordinates = np.flatnonzero(~np.isfinite(scores).all(axis=0))
    where = (
        f"the target's score is not finite in coordinate(s) {coordinates[:5].tolist()}"
        if coordinates.size
        else "the target is finite at the last good draws, so the step itself overflowed"
    )
    bad = np.flatnonzero(~np.isfinite(values) | ~np.isfinite(scores).all(axis=1))
    example = f" For instance at x = {np.asarray(x[bad[0]])[:5].tolist()}." if bad.size else ""
    step = result.rows[-1]["step"] if result.rows else 0
    return (
        f"{result.outcome.value} (step {step}): {where}.{example} Try a smaller "
        "`learning_rate`, or mend the log density there; `error.fit.sampler` holds the last finite sampler."
    )


def _last(rows: list[Row]) -> dict[str, float]:
    return {name: rows[-1][name] for name in ("ksd_imq_v", "inside") if rows and np.isfinite(rows[-1][name])}


def _plain(value: Any) -> Any:
    """Return JSON values: NumPy scalars as numbers, what is not finite as `None`."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
