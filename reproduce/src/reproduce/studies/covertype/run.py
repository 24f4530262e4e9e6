"""Run the study: every row that is not yet recorded, one after the other."""

import time
from collections.abc import Callable
from pathlib import Path

from pushforward._cache import let_programs_go
from reproduce import records
from reproduce.records import Header, Record
from reproduce.studies.covertype.case import Case, load, peak_memory_gb
from reproduce.studies.covertype.judge import Judge
from reproduce.studies.covertype.reference import nuts_row
from reproduce.studies.covertype.rows import rows
from reproduce.studies.covertype.settings import STUDY, Settings
from reproduce.studies.covertype.store import Store
from reproduce.studies.covertype.work import baseline_row, laplace_row, noise_row, ours_row
from reproduce.studies.resuming import begin
from reproduce.studies.row import DONE, Row

Work = Callable[[Row, Case, Judge, Store], list[Record]]

WORK: dict[str, Work] = {
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

    A row's records are added in one write when it is done; NUTS keeps its pieces as well, so that an
    interruption costs minutes at most. Arguments as in the study of the plane.
    """
    folder = Path(folder)
    path, store = folder / f"{STUDY}.jsonl", Store(folder)
    # Data first: a missing folder must not cost the records of an older run.
    data = load(settings)
    header = Header.of_this_machine(STUDY, settings.preset, 0, command)
    done = begin(path, header, fresh=fresh, clear=store.clear)
    todo = [row for row in rows(settings) if row not in done]
    observe(f"{len(done)} rows are recorded, {len(todo)} to go")
    case, judge = None, None
    began = time.monotonic()
    for number, row in enumerate(todo, start=1):
        let_programs_go()
        if case is None or judge is None or (case.name, case.number) != (row.target, row.seed):
            case = Case(data, row.target, row.seed, settings)
            judge = Judge(case, store, settings)
        started = time.monotonic()
        found = WORK.get(row.method, baseline_row)(row, case, judge, store)
        seconds = time.monotonic() - started
        memory = judge.record(row, "peak_memory_gb", peak_memory_gb())
        records.append(path, [*found, memory, judge.record(row, DONE, seconds)])
        store.forget(row)
        minutes = (time.monotonic() - began) / 60
        observe(f"{number}/{len(todo)} {row}: {_summary(found)}{seconds:.0f} s, {minutes:.1f} min in all")
    return path


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches."""
    shown = ("accuracy", "log_predictive", "mean_error", "mean_share", "sd_share", "iterations")
    return "".join(f"{r.metric} {r.value:.4g}, " for r in found if r.metric in shown)
