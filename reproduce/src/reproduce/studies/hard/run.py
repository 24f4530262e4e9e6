"""How each row of the study is run."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from reproduce.records import Record
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.reference import reference_row
from reproduce.studies.hard.rivals import flow_row, nuts_row
from reproduce.studies.hard.rows import rows
from reproduce.studies.hard.settings import Settings
from reproduce.studies.hard.work import annealed_row, default_row, steps_row
from reproduce.studies.row import Row
from reproduce.studies.running import Observe, Study, Work
from reproduce.studies.store import Store

WORK: dict[str, Callable[[Row, Judge, Store, Observe], list[Record]]] = {
    "default": default_row,
    "smc": annealed_row,
    "mixture": annealed_row,
    "nuts": nuts_row,
    "flow": flow_row,
}
"""How the rows that are judged are run."""


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

    return Work(records_of, _summary, clear=store.clear)


run = Study("hard", rows, _work, lambda settings: settings.how("default").recipe).run


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches, as multiples of their floors where they have one."""
    shown = ("sliced_w2", "emc", "neck_sd_error", "tv_wells", "mean_error_95", "log_z_error", "rhat")
    words = []
    for r in found:
        if r.metric in shown:
            multiple = f" ({r.value / r.floor:.2f}x)" if r.floor else ""
            words.append(f"{r.metric} {r.value:.3g}{multiple}, ")
    return "".join(words)
