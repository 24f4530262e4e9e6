"""How each kind of row is run."""

import time

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.training import Outcome, run
from pushforward.training.loop import Position, nothing
from reproduce.posterior import RECIPE, DataPlan, fit_posterior
from reproduce.records import Record
from reproduce.rivals import laplace
from reproduce.rivals.minibatched import minibatched
from reproduce.studies.covertype.case import Case, Store
from reproduce.studies.covertype.judge import Judge
from reproduce.studies.covertype.settings import SLOW, method_of
from reproduce.studies.covertype.watch import Watch
from reproduce.studies.fitting import at_its_end, size_of
from reproduce.studies.row import Draw, Row

PLAIN_LARGE = 20  # times as many rows a step in the row that tries to outspend the noise


def laplace_row(row: Row, case: Case, judge: Judge, store: Store) -> list[Record]:
    """Find the mode and its curvature, and judge the normal law they make."""
    started, cpu_started = time.monotonic(), time.process_time()
    law = laplace.gaussian(case.target.peak())
    seconds, cpu_seconds = time.monotonic() - started, time.process_time() - cpu_started
    draw = eqx.filter_jit(lambda key, n: law.sample(key, n))
    costs = {"train_seconds": seconds, "train_cpu_seconds": cpu_seconds}
    judged = [*judge.fresh_draws(row, draw), *judge.speed_records(row, draw, cpu_seconds)]
    return [*judged, *judge.settings.figures(row, costs)]


def ours_row(row: Row, case: Case, judge: Judge, store: Store) -> list[Record]:
    """Train our recipe; on the first split with someone watching, whose time is not counted."""
    s = judge.settings
    settings = RECIPE.replace(num_steps=s.steps(s.ours_steps))
    plan = {
        "ours": DataPlan(rows=s.ours_rows),
        "ours-plain": DataPlan(rows=s.ours_rows, estimate="plain"),
        "ours-plain-large": DataPlan(rows=PLAIN_LARGE * s.ours_rows, estimate="plain"),
    }[row.method]
    watch = Watch(row, judge)
    done = at_its_end(fit_posterior(
        row.key("train"), case.target, settings=settings, data=plan, progress=False, throw=False,
        monitor=lambda sampler: watch(sampler.sample),
    ))  # fmt: skip
    cpu_seconds, seconds = watch.cpu(), done.seconds - watch.looked
    watch.keep(store, done.history)
    figures = {"train_seconds": seconds, "train_cpu_seconds": cpu_seconds, "iterations": settings.num_steps}
    figures |= {"parameters": size_of(done.sampler.network), **done.sampler.about["metrics"]}
    return [
        *judge.fresh_draws(row, done.sampler.sample),
        *judge.speed_records(row, done.sampler.sample, cpu_seconds),
        *s.figures(row, figures),
    ]


def baseline_row(row: Row, case: Case, judge: Judge, store: Store) -> list[Record]:
    """Run one of the paper's methods for its steps or its time, and judge where it came out."""
    s = judge.settings
    how = method_of(row.method, s, case.target.num_rows)
    target = case.in_frame(case.expanded) if how.framed else case.target
    algorithm = minibatched(how.build, target, how.rows)
    key_init, key_run = jax.random.split(row.key("train"))
    watch = Watch(row, judge)

    def draw_from(state) -> Draw:
        def draw(key: Key[Array, ""], n: int) -> Float[Array, "n dim"]:
            draws = _draw(algorithm.sample, key, state, n)
            return _out(case.frame, draws) if how.framed else draws

        return draw

    steps = s.steps(how.steps)
    # A step of KL takes seconds, and the time limit is looked at once a chunk.
    slow = row.method in SLOW
    log_every = max(1, min(steps // s.looks, 10) if slow else steps // s.looks)
    begin = eqx.filter_jit(algorithm.init)(key_init)
    with store.memory(row, {"rows": how.rows, "steps": steps, "log_every": log_every}) as memory:
        start = memory.restore(Position(begin, nothing(algorithm, key_run, begin)), steps)
        before = Position(begin, {}) if start is None else start[0]
        watch.go_on(before.rows)
        result = run(
            key_run, algorithm, begin, num_steps=steps, log_every=log_every,
            monitor=lambda state: watch(draw_from(state)), start=None if start is None else start[0],
            deadline=time.monotonic() + how.seconds - before.seconds, keep=memory.keep,
        )  # fmt: skip
        assert result.at is not None
        if result.outcome is Outcome.INTERRUPTED:
            # Half a training is nothing to judge: it is where the next run goes on.
            memory.keep(result.at, now=True)
            raise KeyboardInterrupt
    seconds, cpu_seconds = result.at.seconds - watch.looked, watch.cpu()
    watch.keep(store, result.rows)
    draw = draw_from(result.state)
    if how.fixed:
        judged = judge.fixed_draws(row, np.asarray(draw(key_run, s.predictive_draws)))
    else:
        judged = [*judge.fresh_draws(row, draw), *judge.speed_records(row, draw, cpu_seconds)]
    costs = {"train_seconds": seconds, "train_cpu_seconds": cpu_seconds, "iterations": result.at.step}
    return [*judged, *s.figures(row, costs)]


def noise_row(row: Row, case: Case, judge: Judge, store: Store) -> list[Record]:
    """Measure the noise of minibatch scores at posterior draws, in units of the score's own spread."""
    points = jax.random.normal(row.key("points"), (16, case.target.dim))
    truth = _scores(case.in_frame(case.centred), points)
    found = []
    for name, target in (("plain", case.target), ("expanded", case.expanded)):
        for rows in judge.settings.noise_rows:
            errors = []
            for key in jax.random.split(row.key(f"{name}/{rows}"), 10):
                estimate = _scores(case.in_frame(_minibatch(target, key, rows)), points)
                errors.append(np.asarray(estimate - truth))
            noise = np.sqrt(np.mean(np.square(errors), axis=(0, 1)))
            size, worst = np.sqrt(np.mean(noise**2)), float(noise.max())
            metric = f"score_noise_{name}_{rows}"
            found.append(judge.settings.record(row, metric, size, spread=worst, n=rows, repeats=10))
    return found


@eqx.filter_jit
def _minibatch(target, key: Key[Array, ""], rows: int):
    return target.minibatch(key, rows)


@eqx.filter_jit
def _scores(target, points: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    return jax.vmap(target.score)(points)


@eqx.filter_jit
def _draw(sample, key: Key[Array, ""], state, n: int) -> Float[Array, "n dim"]:
    return sample(key, state, n)


@eqx.filter_jit
def _out(frame, draws: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    return jax.vmap(frame)(draws)
