"""How each row of ours is run: the fit, the stages inside it, and its steps."""

import time
import traceback
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from pushforward.training.assemble import build_parts
from pushforward.training.budget import Budget
from pushforward.training.lesson import Lesson
from pushforward.training.phases import Work

from pushforward import targets
from pushforward.checks import check_duration
from pushforward.frame import InFrame
from pushforward.latents import Uniform
from pushforward.sampler import Sampler
from pushforward.training import preset
from pushforward.training.alternating import alternating
from pushforward.training.loop import run_chunk
from pushforward.training.outcome import Outcome
from pushforward.trust.evidence import add_noise, evidence
from reproduce.records import Record
from reproduce.studies.fitting import fit_to_the_end
from reproduce.studies.hard.cases import case
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.rivals import Observe, from_pool
from reproduce.studies.hard.rows import record_of
from reproduce.studies.hard.settings import Settings
from reproduce.studies.row import Row
from reproduce.studies.store import Store

NOISE = 0.02
"""The noise head's size for `log Z`, in units of the frame."""

MAX_WEIGHED_DIM = 64
"""Beyond, the Jacobian of every draw costs more than the estimate tells."""


def default_row(row: Row, judge: Judge, store: Store, observe: Observe) -> list[Record]:
    """`pf.fit(key, target, budget="5m")`, and nothing else; a crash is a record, not the end of the study."""
    s = judge.settings
    kept = store.sampler(row, s.max_steps)
    if kept is None:
        started = time.monotonic()
        try:
            done = fit_to_the_end(jax.random.key(row.seed), judge.target, steps=s.max_steps, budget=s.budget)
        except Exception:
            observe(f"{row} crashed:\n{traceback.format_exc()}")
            seconds = time.monotonic() - started
            return [judge.record(row, "crashed", 1), judge.record(row, "train_seconds", seconds)]
        store.keep(row, s.max_steps, done.sampler, {"study_seconds": done.seconds})
        kept = store.sampler(row, s.max_steps)
        assert kept is not None
    about = kept.about
    good = Outcome[about["outcome"]].good
    return [
        *judge.scores(row, kept.sample),
        judge.record(row, "crashed", 0),
        judge.record(row, "outcome_good", int(good)),
        judge.record(row, "finite", float(np.isfinite(kept.sample(row.key("finite"), s.moment_n)).all())),
        judge.record(row, "train_seconds", about["study_seconds"]),
        judge.record(row, "draws_per_second", _rate(kept, row, s.speed_n), n=s.speed_n),
        *_phases(row, judge, about),
        *_evidence(row, judge, kept),
    ]


def _rate(sampler: Sampler, row: Row, n: int) -> float:
    """Return draws a second, compiled."""
    sampler.sample(row.key("warm"), n)
    seconds = []
    for i in range(3):
        started = time.monotonic()
        jax.block_until_ready(sampler.sample(jax.random.fold_in(row.key("speed"), i), n))
        seconds.append(time.monotonic() - started)
    return n / float(np.median(seconds))


def _phases(row: Row, judge: Judge, about: dict) -> list[Record]:
    """Return what the fit says of its own phases."""
    found = [judge.record(row, f"seconds: {p['phase']}", p["seconds"]) for p in about.get("phases", [])]
    efficiency = about.get("metrics", {}).get("efficiency")
    return found + ([] if efficiency is None else [judge.record(row, "efficiency", efficiency)])


def _evidence(row: Row, judge: Judge, sampler: Sampler) -> list[Record]:
    """Return what a noise head finds: `log Z`, its error, and whether the weights can be believed."""
    log_z = getattr(judge.target, "log_z", None)
    known = not isinstance(sampler.latent, Uniform) and sampler.dim <= MAX_WEIGHED_DIM
    if "log_z" not in judge.case.asks or log_z is None or not known:
        return []
    noisy = add_noise(row.key("noise"), sampler, NOISE)
    found = evidence(row.key("evidence"), noisy, judge.target, num_draws=judge.settings.evidence_n)
    n = judge.settings.evidence_n
    return [
        judge.record(row, "log_z_error", abs(found.log_z - float(log_z)), n=n, spread=found.log_z_error),
        judge.record(row, "elbo_gap", float(log_z) - found.elbo[0], n=n, spread=found.elbo[1]),
        judge.record(row, "noise_efficiency", found.efficiency, n=n),
        judge.record(row, "pareto_k", found.k, n=n),
    ]


@lru_cache(maxsize=1)
def _lesson_of(target: str, seed: int, budget: str, *, plans: bool) -> tuple[Lesson, float]:
    """Return what the teacher inside `fit(key(seed), target, budget)` learns, and in how many seconds."""
    started = time.monotonic()
    allowed = Budget(started, check_duration(budget, "budget"), plans)
    work = Work(jax.random.key(seed), case(target).build(), preset("default"), progress=False, budget=allowed)
    work.teach()
    assert work.lesson is not None
    return work.lesson, time.monotonic() - started


def teacher_row(row: Row, judge: Judge, store: Store, observe: Observe) -> list[Record]:
    """Judge the teacher's particles (`smc`), or the mixture of normals fitted to them: no network yet."""
    s = judge.settings
    lesson, seconds = _lesson_of(row.target, row.seed, s.budget, plans=s.max_steps is None)
    frame = jax.jit(jax.vmap(lesson.frame))

    def from_mixture(key: Key[Array, ""], n: int) -> Float[Array, "n dim"]:
        return frame(lesson.mixture.sample(key, n))

    extra = []
    if row.method == "smc":
        pool = frame(lesson.draws)
        draw, most = from_pool(pool), pool.shape[0]
        log_z = getattr(judge.target, "log_z", None)
        if log_z is not None:
            extra = [judge.record(row, "log_z_error", abs(lesson.log_z - float(log_z)))]
    else:
        draw, most = from_mixture, None
    return [*judge.scores(row, draw, most), judge.record(row, "train_seconds", seconds), *extra]


def steps_row(row: Row, settings: Settings) -> list[Record]:
    """Time a training step of the default on a Gaussian of this dimension: its own choices, compiled."""
    dim = int(row.target.removeprefix("gaussian_").removesuffix("d"))
    target = targets.correlated_gaussian(jax.random.key(0), dim, 100.0)
    done = fit_to_the_end(jax.random.key(0), target, steps=2)
    key_parts, key_draws, key_steps = jax.random.split(row.key("steps"), 3)
    latent, frame = done.sampler.latent, done.sampler.frame
    parts = build_parts(
        key_parts,
        InFrame(target, frame),
        done.settings,
        mixture=latent,
        draws=jax.random.normal(key_draws, (4096, dim)),
    )
    algorithm = alternating(parts)
    state = algorithm.init(key_steps)
    count = jnp.asarray(settings.step_count)
    jax.block_until_ready(run_chunk(algorithm, key_steps, state, jnp.asarray(0), jnp.asarray(1)))
    seconds = []
    for _ in range(3):
        started = time.monotonic()
        jax.block_until_ready(run_chunk(algorithm, key_steps, state, jnp.asarray(0), count))
        seconds.append((time.monotonic() - started) / settings.step_count)
    return [record_of(settings, row, "step_seconds", np.median(seconds), n=settings.step_count)]
