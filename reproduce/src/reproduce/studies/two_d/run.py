"""Run the study: every row that is not yet recorded, one after the other."""

import time
from collections.abc import Callable
from pathlib import Path

from pushforward._cache import let_programs_go
from reproduce import records
from reproduce.records import Header, Record
from reproduce.studies.resuming import begin
from reproduce.studies.row import DONE, Row
from reproduce.studies.two_d.baselines import chain_row, exact_row
from reproduce.studies.two_d.family import default_row, sobol_row, teacher_row, thin_row
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.rows import row_of, rows
from reproduce.studies.two_d.settings import STUDY, Settings
from reproduce.studies.two_d.speed import speed_row
from reproduce.studies.two_d.store import Store
from reproduce.studies.two_d.trained import flow_row, one_shot_row

Work = Callable[[Row, Judge, Store], list[Record]]

WORK: dict[str, Work] = {
    "default": default_row,
    "smc": teacher_row,
    "mixture": teacher_row,
    "default-thin": thin_row,
    "default-sobol": sobol_row,
    "exact": exact_row,
    "ld": chain_row,
    "hmc": chain_row,
    "svgd": chain_row,
    "flow": flow_row,
    "speed": speed_row,
}
"""How a row is run; all others train one of our networks and judge it."""


def run(
    settings: Settings,
    folder: str | Path,
    *,
    fresh: bool = False,
    command: str = "pushforward study two-d",
    observe: Callable[[str], None] = lambda words: None,
) -> Path:
    """Run all rows that `folder/two_d.jsonl` does not hold yet, and return its path.

    A row's records are added in one write when it is done, so an interruption costs one row at most.

    **Arguments:**

    - `settings`: of `PRESETS`, perhaps with changes.
    - `folder`: where the records go, with draws and curves for the figures beside them.
    - `fresh`: begin again, whatever is there.
    - `command`: goes into the header, for whoever wants to run it again.
    - `observe`: told one line per row.
    """
    folder = Path(folder)
    path, store = folder / f"{STUDY}.jsonl", Store(folder)
    header = Header.of_this_machine(STUDY, settings.preset, 0, command)
    done = begin(path, header, row_of=row_of, fresh=fresh, clear=store.clear)
    todo = [row for row in rows(settings) if row not in done]
    observe(f"{len(done)} rows are recorded, {len(todo)} to go")
    judges: dict[str, Judge] = {}
    began = time.monotonic()
    for number, row in enumerate(todo, start=1):
        let_programs_go()
        judge = judges.setdefault(row.target, Judge(row.target, settings))
        started = time.monotonic()
        found = WORK.get(row.method, one_shot_row)(row, judge, store)
        seconds = time.monotonic() - started
        records.append(path, [*found, judge.record(row, DONE, seconds)])
        minutes = (time.monotonic() - began) / 60
        observe(f"{number}/{len(todo)} {row}: {_summary(found)} {seconds:.0f} s, {minutes:.1f} min in all")
    return path


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches, as multiples of their floors."""
    shown = [r for r in found if r.metric in ("ksd_imq_v", "sliced_w2") and r.floor]
    return "".join(f"{r.metric} {r.value / r.floor:.2f}x, " for r in shown if r.floor)
