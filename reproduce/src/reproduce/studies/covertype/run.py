"""How each row of the study is run."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from reproduce.posterior import RECIPE
from reproduce.records import Header, Record
from reproduce.studies.covertype.case import Case, load, peak_memory_gb
from reproduce.studies.covertype.judge import Judge
from reproduce.studies.covertype.reference import nuts_row
from reproduce.studies.covertype.rows import rows
from reproduce.studies.covertype.settings import STUDY, Settings
from reproduce.studies.covertype.store import Store
from reproduce.studies.covertype.work import baseline_row, laplace_row, noise_row, ours_row
from reproduce.studies.row import Row
from reproduce.studies.running import Work, run_rows

WORK: dict[str, Callable[[Row, Case, Judge, Store], list[Record]]] = {
    "laplace": laplace_row,
    "nuts": nuts_row,
    "ours": ours_row,
    "ours-plain": ours_row,
    "ours-plain-large": ours_row,
    "noise": noise_row,
}
"""How a row is run; all others are methods of the paper."""


def run(
    settings: Settings,
    folder: str | Path,
    *,
    fresh: bool = False,
    command: str = "pushforward study covertype",
    observe: Callable[[str], None] = lambda words: None,
) -> Path:
    """Run all rows that `folder/covertype.jsonl` does not hold yet, and return its path.

    NUTS keeps its pieces, so that an interruption costs minutes at most. Arguments as in the study of the
    plane.
    """
    path, store = Path(folder) / f"{STUDY}.jsonl", Store(Path(folder))
    # Data first: a missing folder must not cost the records of an older run.
    data = load(settings)

    @lru_cache(maxsize=1)
    def judge_of(target: str, number: int) -> tuple[Case, Judge]:
        case = Case(data, target, number, settings)
        return case, Judge(case, store, settings)

    def records_of(row: Row) -> list[Record]:
        case, judge = judge_of(row.target, row.seed)
        found = WORK.get(row.method, baseline_row)(row, case, judge, store)
        return [*found, judge.record(row, "peak_memory_gb", peak_memory_gb())]

    header = Header.of_this_machine(STUDY, settings.preset, 0, command, RECIPE)
    work = Work(records_of, _summary, clear=store.clear, after=store.forget)
    return run_rows(path, header, rows(settings), work, fresh=fresh, observe=observe)


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches."""
    shown = ("accuracy", "log_predictive", "mean_error", "mean_share", "sd_share", "iterations")
    return "".join(f"{r.metric} {r.value:.4g}, " for r in found if r.metric in shown)
