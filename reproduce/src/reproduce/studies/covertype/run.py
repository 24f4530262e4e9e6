"""How each row of the study is run."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from reproduce.posterior import RECIPE
from reproduce.records import Record
from reproduce.studies.covertype.case import Case, load, peak_memory_gb
from reproduce.studies.covertype.judge import Judge
from reproduce.studies.covertype.reference import nuts_row
from reproduce.studies.covertype.rows import rows
from reproduce.studies.covertype.settings import Settings
from reproduce.studies.covertype.store import Store
from reproduce.studies.covertype.work import baseline_row, laplace_row, noise_row, ours_row
from reproduce.studies.row import Row
from reproduce.studies.running import Observe, Study, Work

WORK: dict[str, Callable[[Row, Case, Judge, Store], list[Record]]] = {
    "laplace": laplace_row,
    "nuts": nuts_row,
    "ours": ours_row,
    "ours-plain": ours_row,
    "ours-plain-large": ours_row,
    "noise": noise_row,
}
"""How a row is run; all others are methods of the paper."""


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    data, store = load(settings), Store(folder)

    @lru_cache(maxsize=1)
    def judge_of(target: str, number: int) -> tuple[Case, Judge]:
        case = Case(data, target, number, settings)
        return case, Judge(case, store, settings)

    def records_of(row: Row) -> list[Record]:
        case, judge = judge_of(row.target, row.seed)
        found = WORK.get(row.method, baseline_row)(row, case, judge, store)
        return [*found, settings.record(row, "peak_memory_gb", peak_memory_gb())]

    return Work(records_of, _summary, clear=store.clear, after=store.forget)


run = Study("covertype", rows, _work, lambda settings: RECIPE).run


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches."""
    shown = ("accuracy", "log_predictive", "mean_error", "mean_share", "sd_share", "iterations")
    return "".join(f"{r.metric} {r.value:.4g}, " for r in found if r.metric in shown)
