"""Run a study: every row that is not yet recorded, one after the other."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pushforward.programs import let_programs_go
from reproduce import records
from reproduce.records import Header, Record
from reproduce.studies.resuming import begin
from reproduce.studies.row import DONE, Row, row_of


class Work(NamedTuple):
    """What a study does with a row, and what is told of it.

    **Arguments:**

    - `of`: returns the records of a row.
    - `summary`: returns the figures a reader watches.
    - `row_of`: returns the row that a record came from.
    - `clear`: forgets what earlier rows left beside the records, where a new file begins.
    - `after`: called with a row once it is recorded.
    """

    of: Callable[[Row], list[Record]]
    summary: Callable[[list[Record]], str]
    row_of: Callable[[Record], Row] = row_of
    clear: Callable[[], None] = lambda: None
    after: Callable[[Row], None] = lambda row: None


def run_rows(
    path: Path, header: Header, rows: list[Row], work: Work, *, fresh: bool, observe: Callable[[str], None]
) -> Path:
    """Run all rows that the file at `path` does not hold yet, and return it.

    A row's records are added in one write when it is done, so an interruption costs one row at most.
    """
    done = begin(path, header, fresh=fresh, row_of=work.row_of, clear=work.clear)
    todo = [row for row in rows if row not in done]
    observe(f"{len(done)} rows are recorded, {len(todo)} to go")
    began = time.monotonic()
    for number, row in enumerate(todo, start=1):
        let_programs_go()
        started = time.monotonic()
        found = work.of(row)
        seconds = time.monotonic() - started
        last = Record(header.study, header.preset, row.method, row.target, DONE, seconds, repeats=1)
        records.append(path, [*found, dataclasses.replace(last, seed=row.seed)])
        work.after(row)
        minutes = (time.monotonic() - began) / 60
        observe(f"{number}/{len(todo)} {row}: {work.summary(found)}{seconds:.0f} s, {minutes:.1f} min in all")
    return path
