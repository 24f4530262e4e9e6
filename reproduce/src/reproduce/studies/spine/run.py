"""Fit, judge against the floor, record; rows already recorded are skipped.

The planar rows have the protocol, keys and settings of the 2-D study, so that a sampler which that study
has kept in the same folder is judged here without being trained again.
"""

import dataclasses
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np
from scipy import stats

from pushforward import methods
from reproduce.records import Record, of_recipe
from reproduce.studies.fitting import fit_to_the_end
from reproduce.studies.row import Row
from reproduce.studies.running import Observe, Study, Work
from reproduce.studies.settings import FEW, FitSettings
from reproduce.studies.store import Figures
from reproduce.studies.two_d import PRESETS as PLANAR
from reproduce.studies.two_d import Settings as PlanarSettings
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.recipes import recipe
from reproduce.studies.two_d.run import row_of
from reproduce.studies.two_d.trained import sampler_of
from reproduce.studies.two_d.watch import Store
from reproduce.targets import student_t

LEVELS = np.array([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995])
"""The median is zero, where a relative error means nothing; it is compared in units of the quartile."""

NUM_DRAWS = 1_000_000

QUANTILES = "spine_draws.npz"
FINE_LEVELS = np.concatenate([[0.001, 0.002, 0.005], np.linspace(0.01, 0.99, 99), [0.995, 0.998, 0.999]])


def student_t_row(row: Row, settings: FitSettings, folder: Path) -> list[Record]:
    """Fit one method to one t and record its quantile errors; the quantiles are kept for the figure."""
    df = float(row.target.rsplit("_", 1)[1])
    how = settings.asked(methods.METHODS[row.method])
    done = fit_to_the_end(jax.random.key(row.seed), student_t(df), method=how)
    draws = np.sort(np.asarray(done.sampler.sample(jax.random.key(1000), NUM_DRAWS))[:, 0])
    truth = stats.t.ppf(LEVELS, df)
    relative = np.abs(np.quantile(draws, LEVELS) / truth - 1.0)
    median = abs(float(np.median(draws))) / float(stats.t.ppf(0.75, df))
    fine = np.quantile(draws, FINE_LEVELS).astype(np.float32)
    Figures(folder / QUANTILES).add({f"quantiles/{row.method}/{row.target}": fine, "levels": FINE_LEVELS})

    errors = {
        "quantile_error": relative.max(),
        "quantile_error_inner": relative[np.abs(LEVELS - 0.5) <= 0.45 + 1e-9].max(),
        "median_error": median,
    }
    seconds = settings.record(row, "train_seconds", done.seconds)
    return of_recipe(how.recipe, [*settings.figures(row, errors, n=NUM_DRAWS), seconds])


METHODS = ("default", "kl", "fisher")
PLANAR_TARGETS = ("gaussian", "rosenbrock", "donut", "squiggle")
STUDENT_T = ("student_t_5", "student_t_3", "student_t_2")


@dataclass(frozen=True, kw_only=True)
class Settings(FitSettings):
    """Which rows run: methods on planar targets with several training seeds, and on Student's t with one."""

    study: ClassVar = "spine"
    choices: ClassVar = {"methods": METHODS, "targets": (*PLANAR_TARGETS, *STUDENT_T)}

    methods: tuple[str, ...] = METHODS
    targets: tuple[str, ...] = (*PLANAR_TARGETS, *STUDENT_T)
    seeds: int = 3


PRESETS = {
    "smoke": Settings(
        preset="smoke", targets=("gaussian", "student_t_5"), seeds=1, max_steps=6, recipe_changes=FEW
    ),
    "cpu": Settings(preset="cpu"),
}


def rows(settings: Settings) -> list[Row]:
    """Return all rows, Student's t last."""
    found = [Row(m, t, s) for t in PLANAR_TARGETS for s in range(settings.seeds) for m in settings.methods]
    found += [Row(m, t, 0) for t in STUDENT_T for m in settings.methods]
    return [row for row in found if row.target in settings.targets and row.method in settings.methods]


def plan(settings: Settings) -> list[str]:
    """Return the rows for a reader."""
    return [str(row) for row in rows(settings)]


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    store, planar = Store(folder), _planar(settings)
    # One judge a target: its floors are dear and serve all rows.
    judge_of = cache(lambda name: Judge(name, planar))

    def records_of(row: Row) -> list[Record]:
        if row.target in STUDENT_T:
            return student_t_row(row, settings, folder)
        found = _planar_row(row, judge_of(row.target), store)
        return [dataclasses.replace(record, study=settings.study) for record in found]

    return Work(records_of, _summary, row_of=row_of)


def _planar(settings: Settings) -> PlanarSettings:
    same = {"max_steps": settings.max_steps, "recipe_changes": settings.recipe_changes}
    return PLANAR[settings.preset].replace(**same)


run = Study("spine", rows, _work, lambda settings: recipe("default", _planar(settings)).recipe).run


def _planar_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    sampler, seconds = sampler_of(row, judge, store)
    return of_recipe(recipe(row.method, judge.settings).recipe, [
        judge.paper_ksd(row, sampler.sample),
        judge.score(row, "sliced_w2", sampler.sample, judge.settings.pair_n, judge.settings.pairs),
        judge.settings.record(row, "train_seconds", seconds),
    ])  # fmt: skip


def _summary(found: list[Record]) -> str:
    ratios = [f"{r.metric} {r.value / r.floor:.3f}x, " for r in found if r.floor]
    return "".join(ratios or [f"{r.metric} {r.value:.3g}, " for r in found])
