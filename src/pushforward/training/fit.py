"""`fit`: from a target to a sampler, in phases that say what they did."""

import dataclasses
import json
import time
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from rich.console import Console

from pushforward.base import Target
from pushforward.checks import check_count, check_key
from pushforward.frame import Frame, InFrame
from pushforward.latents import NormalMixture
from pushforward.metrics import ksd_imq_v
from pushforward.networks import MLP, Modulated
from pushforward.sampler import Sampler
from pushforward.training.alternating import Parts, State, alternating, averaged
from pushforward.training.assemble import build_parts
from pushforward.training.loop import LoopResult, Row, run
from pushforward.training.outcome import FitError, Outcome
from pushforward.training.preflight import check_target
from pushforward.training.progress import progress_bar
from pushforward.training.repair import repair_weights, weigh
from pushforward.training.settings import Settings, preset
from pushforward.training.teacher import Lesson, learn

LOG_ROWS = 40
"""Rows of history in a run: often enough to see it move, seldom enough to cost nothing."""

MONITOR_DRAWS = 500
MAX_EXACT_DIM = 20
"""Up to here the default computes the sampler's entropy exactly; beyond, it fits a score net."""


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
    method: str = "default",
    settings: Settings | None = None,
    steps: int | None = None,
    progress: bool = True,
    throw: bool = True,
) -> Fit:
    """Train a one-shot sampler of `target`.

    **Arguments:**

    - `key`: a typed key; the same key and settings give the same sampler.
    - `target`: what to sample; `Target.from_log_density(fn, dim=...)` makes one of a function.
    - `method`: `default` (what works), or one of the paper's: `kl`, `fisher`, `combined`, ...
    - `settings`: instead of a method, all of its choices: `preset("kl", width=128)`.
    - `steps`: training steps, in place of the method's.
    - `progress`: show a progress bar on standard error.
    - `throw`: raise `FitError` when training diverges; otherwise hand back the last finite sampler.

    Ctrl-C hands back the last good sampler, with the outcome `INTERRUPTED`.
    """
    check_key(key)
    settings = settings if settings is not None else preset(method)
    if not isinstance(settings, Settings):
        raise TypeError(
            f"`settings` must be Settings, such as `preset('kl', width=128)`; got {type(settings).__name__}."
        )
    if steps is not None:
        settings = settings.replace(num_steps=check_count(steps, "steps"))
    key_check, key_teacher, key_parts, key_train, key_finish = jax.random.split(key, 5)
    check_target(key_check, target)
    settings = _for_dimension(settings, target.dim)

    phases: list[dict[str, Any]] = []
    lesson = _teach(key_teacher, target, settings, phases, progress=progress)
    frame = Frame.identity(target.dim) if lesson is None else lesson.frame
    framed = InFrame(target, frame)
    parts = build_parts(
        key_parts,
        framed,
        settings,
        mixture=None if lesson is None else lesson.mixture,
        draws=None if lesson is None else lesson.draws,
    )
    parts, result = _train(key_train, target, frame, parts, phases, progress=progress)
    network, metrics = averaged(parts, result.state), {}
    if settings.objective == "exact_kl":
        parts, metrics = _finish(key_finish, parts, network, phases)
    about = {
        "target": target.name,
        "method": settings.method,
        "settings": dataclasses.asdict(settings),
        "outcome": result.outcome.name,
        "metrics": {**_last(result.rows), **metrics},
        "phases": phases,
    }
    sampler = Sampler(parts.latent, network, frame, json.dumps(_plain(about)))
    done = Fit(sampler, result.outcome, settings, phases, result.rows)
    if result.outcome is Outcome.DIVERGED and throw:
        raise FitError(_why_diverged(key_finish, target, sampler, result), done)
    return done


def _for_dimension(settings: Settings, dim: int) -> Settings:
    """Where the exact entropy would be too dear, polish with a score net, in steps too small to harm."""
    if settings.method == "default" and dim > MAX_EXACT_DIM:
        return settings.replace(
            objective="kl", matching="sliced" if dim > 64 else "exact", learning_rate=1e-4,
            score_learning_rate=3e-4, score_steps=3, score_width=128, beta1=0.0,
        )  # fmt: skip
    return settings


def _teach(
    key: Key[Array, ""], target: Target, settings: Settings, phases: list, *, progress: bool
) -> Lesson | None:
    if settings.frame == "identity":
        return None
    started = time.monotonic()
    if progress:
        with Console(stderr=True).status("teacher") as status:
            lesson = learn(key, target, observe=lambda words: status.update(f"teacher: {words}"))
    else:
        lesson = learn(key, target)
    seconds = time.monotonic() - started
    phases.append({"phase": "teacher", "seconds": seconds, "log_z": lesson.log_z, "rounds": lesson.rounds})
    return lesson


def _train(
    key: Key[Array, ""], target: Target, frame: Frame, parts: Parts, phases: list, *, progress: bool
) -> tuple[Parts, LoopResult]:
    algorithm, key_monitor = alternating(parts), jax.random.fold_in(key, 1)
    started = time.monotonic()

    def monitor(state: State) -> Row:
        draws = _frame_draws(frame, algorithm.sample, key_monitor, state)
        finite = bool(jnp.all(jnp.isfinite(draws)))
        return {"ksd_imq_v": float(ksd_imq_v(draws, target)) if finite else float("nan")}

    with progress_bar(target.name, parts.num_steps, show=progress) as observe:
        result = run(
            key,
            algorithm,
            algorithm.init(key),
            num_steps=parts.num_steps,
            log_every=max(1, parts.num_steps // LOG_ROWS),
            monitor=monitor,
            observe=observe,
        )
    skipped = sum(row["skipped"] for row in result.rows) / max(len(result.rows), 1)
    phases.append(
        {
            "phase": "train",
            "seconds": time.monotonic() - started,
            "steps": result.rows[-1]["step"] if result.rows else 0,
            "skipped": skipped,
            "outcome": result.outcome.name,
        }
    )
    return parts, result


@eqx.filter_jit
def _frame_draws(frame: Frame, sample: Any, key: Key[Array, ""], state: State) -> Float[Array, "n dim"]:
    return jax.vmap(frame)(sample(key, state, MONITOR_DRAWS))


def _finish(
    key: Key[Array, ""], parts: Parts, network: MLP | Modulated, phases: list
) -> tuple[Parts, dict[str, float]]:
    """Put the mode weights right and say how near the sampler came."""
    started = time.monotonic()
    key_repair, key_weigh = jax.random.split(key)
    if isinstance(parts.latent, NormalMixture):
        latent = repair_weights(key_repair, parts.target, parts.latent, network)
        parts = eqx.tree_at(lambda p: p.latent, parts, latent)
    weighing = weigh(key_weigh, parts.target, parts.latent, network)
    found = {"efficiency": float(weighing.efficiency), "log_z": float(weighing.log_z)}
    phases.append({"phase": "repair", "seconds": time.monotonic() - started, **found})
    return parts, found


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
    return {"ksd_imq_v": rows[-1]["ksd_imq_v"]} if rows and np.isfinite(rows[-1]["ksd_imq_v"]) else {}


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
