"""How each row of the study is run."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from reproduce.records import Header, Record
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.reference import reference_row
from reproduce.studies.hard.rivals import flow_row, nuts_row
from reproduce.studies.hard.rows import rows
from reproduce.studies.hard.settings import STUDY, Settings
from reproduce.studies.hard.work import annealed_row, default_row, steps_row
from reproduce.studies.row import Row
from reproduce.studies.running import Work, run_rows
from reproduce.studies.store import Store

WORK: dict[str, Callable[[Row, Judge, Store, Callable[[str], None]], list[Record]]] = {
    "default": default_row,
    "smc": annealed_row,
    "mixture": annealed_row,
    "nuts": nuts_row,
    "flow": flow_row,
}
"""How the rows that are judged are run."""


def run(
    settings: Settings,
    folder: str | Path,
    *,
    fresh: bool = False,
    command: str = "pushforward study hard",
    observe: Callable[[str], None] = lambda words: None,
) -> Path:
    """Run all rows that `folder/hard.jsonl` does not hold yet, and return its path.

    Arguments as in the study of the plane; `fresh` keeps the reference draws, which no fit has touched.
    """
    path, store = Path(folder) / f"{STUDY}.jsonl", Store(Path(folder), STUDY)
    header = Header.of_this_machine(STUDY, settings.preset, 0, command, settings.how("default").recipe)
    # One judge at a time: it holds references of many megabytes.
    judge_of = lru_cache(maxsize=1)(lambda name: Judge(name, settings, store))

    def records_of(row: Row) -> list[Record]:
        if row.method == "reference":
            return reference_row(row, settings, store)
        if row.method == "steps":
            return steps_row(row, settings)
        return WORK[row.method](row, judge_of(row.target), store, observe)

    work = Work(records_of, _summary, clear=store.clear)
    return run_rows(path, header, rows(settings), work, fresh=fresh, observe=observe)


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches, as multiples of their floors where they have one."""
    shown = ("sliced_w2", "emc", "neck_sd_error", "tv_wells", "mean_error_95", "log_z_error", "rhat")
    words = []
    for r in found:
        if r.metric in shown:
            multiple = f" ({r.value / r.floor:.2f}x)" if r.floor else ""
            words.append(f"{r.metric} {r.value:.3g}{multiple}, ")
    return "".join(words)
