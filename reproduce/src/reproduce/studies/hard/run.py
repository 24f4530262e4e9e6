"""The study's rows, and how each is run."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from reproduce.records import Record
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.reference import reference_row
from reproduce.studies.hard.settings import EXACT, RANDOM, Settings, case
from reproduce.studies.hard.work import annealed_row, default_row, flow_row, nuts_row, steps_row
from reproduce.studies.row import Row, counted
from reproduce.studies.running import Observe, Study, Work, watching
from reproduce.studies.store import Store


def rows(settings: Settings) -> list[Row]:
    """Return all rows: the first seed of everything, then what the others add, then the cost of steps."""
    found: list[Row] = []
    for seed in range(settings.seeds):
        for target in settings.targets:
            if target in RANDOM:
                found += [Row("default", target, 0)] if seed == 0 else []
                continue
            if seed == 0 and case(target).truth != EXACT:
                found.append(Row("reference", target, 0))
            # The rivals come after the default, whose seconds they are given.
            found += [Row(method, target, seed) for method in ("default", "smc", "mixture", "nuts", "flow")]
    found += [Row("steps", f"gaussian_{dim}d", 0) for dim in settings.step_dims]
    return [row for row in found if row.method in settings.methods]


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows by method, and what each target is judged against."""
    todo = rows(settings)
    lines = [f"{len(todo)} rows on {len(settings.targets)} targets", *counted(todo)]
    return lines + [f"{name}: held against {case(name).truth}" for name in settings.targets]


WORK: dict[str, Callable[[Row, Judge, Store, Observe], list[Record]]] = {
    "default": default_row,
    "smc": annealed_row,
    "mixture": annealed_row,
    "nuts": nuts_row,
    "flow": flow_row,
}
"""How the rows that are judged are run."""

WATCHED = ("sliced_w2", "emc", "neck_sd_error", "tv_wells", "mean_error_95", "log_z_error", "rhat")


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    store = Store(folder, settings.study)
    # One judge at a time: it holds references of many megabytes.
    judge_of = lru_cache(maxsize=1)(lambda name: Judge(name, settings, store))

    def records_of(row: Row) -> list[Record]:
        if row.method == "reference":
            return reference_row(row, settings, store)
        if row.method == "steps":
            return steps_row(row, settings)
        return WORK[row.method](row, judge_of(row.target), store, observe)

    return Work(records_of, watching(*WATCHED), clear=store.clear)


run = Study("hard", rows, _work, lambda settings: settings.how("default").recipe).run
