"""Run the study: every row that is not yet recorded, one after the other."""

import time
from collections.abc import Callable
from pathlib import Path

from pushforward._cache import let_programs_go
from reproduce import records
from reproduce.records import Header, Record
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.reference import reference_row
from reproduce.studies.hard.rivals import flow_row, nuts_row
from reproduce.studies.hard.rows import record_of, rows
from reproduce.studies.hard.settings import STUDY, Settings
from reproduce.studies.hard.work import default_row, steps_row, teacher_row
from reproduce.studies.resuming import begin
from reproduce.studies.row import DONE, Row
from reproduce.studies.store import Store

Work = Callable[[Row, Judge, Store, Callable[[str], None]], list[Record]]

WORK: dict[str, Work] = {
    "default": default_row,
    "smc": teacher_row,
    "mixture": teacher_row,
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

    A row's records are added in one write when it is done, so an interruption costs one row at most.
    Arguments as in the study of the plane; `fresh` keeps the reference draws, which no fit has touched.
    """
    folder = Path(folder)
    path, store = folder / f"{STUDY}.jsonl", Store(folder, STUDY)
    header = Header.of_this_machine(STUDY, settings.preset, 0, command)
    done = begin(path, header, fresh=fresh, clear=store.clear)
    todo = [row for row in rows(settings) if row not in done]
    observe(f"{len(done)} rows are recorded, {len(todo)} to go")
    judge: Judge | None = None
    began = time.monotonic()
    for number, row in enumerate(todo, start=1):
        let_programs_go()
        started = time.monotonic()
        if row.method == "reference":
            found = reference_row(row, settings, store)
        elif row.method == "steps":
            found = steps_row(row, settings)
        else:
            # One at a time: a judge holds references of many megabytes.
            judge = (
                judge
                if judge is not None and judge.name == row.target
                else Judge(row.target, settings, store)
            )
            found = WORK[row.method](row, judge, store, observe)
        seconds = time.monotonic() - started
        records.append(path, [*found, record_of(settings, row, DONE, seconds)])
        minutes = (time.monotonic() - began) / 60
        observe(f"{number}/{len(todo)} {row}: {_summary(found)}{seconds:.0f} s, {minutes:.1f} min in all")
    return path


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches, as multiples of their floors where they have one."""
    shown = ("sliced_w2", "emc", "neck_sd_error", "tv_wells", "mean_error_95", "log_z_error", "rhat")
    words = []
    for r in found:
        if r.metric in shown:
            multiple = f" ({r.value / r.floor:.2f}x)" if r.floor else ""
            words.append(f"{r.metric} {r.value:.3g}{multiple}, ")
    return "".join(words)
