"""Run the study: every row that is not yet recorded, one after the other."""

import time
from collections.abc import Callable
from pathlib import Path

from pushforward._cache import let_programs_go
from pushforward.trust.line import VERDICTS
from reproduce import records
from reproduce.records import Header, Record
from reproduce.studies.models.cases import REFERENCE
from reproduce.studies.models.judge import fit_row
from reproduce.studies.models.reference import reference_row
from reproduce.studies.models.rows import record_of, rows
from reproduce.studies.models.settings import STUDY, Settings
from reproduce.studies.resuming import begin
from reproduce.studies.row import DONE
from reproduce.studies.store import Store


def plan(settings: Settings) -> list[str]:
    """Return the rows for a reader."""
    words = {REFERENCE: "long NUTS"}
    return [f"{row}: {words.get(row.method, 'fit, check, compare')}" for row in rows(settings)]


def run(
    settings: Settings,
    folder: str | Path,
    *,
    fresh: bool = False,
    command: str = "pushforward study models",
    observe: Callable[[str], None] = lambda words: None,
) -> Path:
    """Run all rows that `folder/models.jsonl` does not hold yet, and return its path.

    A row's records are added in one write when it is done, so an interruption costs one row at most.

    **Arguments:**

    - `settings`: one of `PRESETS`, or changed from it.
    - `folder`: where the records are, or will be.
    - `fresh`: begin again, whatever is there; chains of NUTS are kept, since no fit has touched them.
    - `command`: written into the header.
    - `observe`: is told a line at a time.
    """
    folder = Path(folder)
    path, store = folder / f"{STUDY}.jsonl", Store(folder, STUDY)
    header = Header.of_this_machine(STUDY, settings.preset, 0, command)
    done = begin(path, header, fresh=fresh, clear=store.clear)
    todo = [row for row in rows(settings) if row not in done]
    observe(f"{len(done)} rows are recorded, {len(todo)} to go")
    for number, row in enumerate(todo, start=1):
        let_programs_go()
        started = time.monotonic()
        if row.method == REFERENCE:
            found = reference_row(row, settings, store)
        else:
            found = fit_row(row, settings, store, observe)
        seconds = time.monotonic() - started
        records.append(path, [*found, record_of(settings, row, DONE, seconds)])
        observe(f"{number}/{len(todo)} {row}: {_summary(found)}{seconds:.0f} s")
    return path


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches."""
    shown = ("rhat", "ess", "mean_error_max", "sd_error_max", "train_seconds", "check_seconds")
    words = [f"{r.metric} {r.value:.3g}, " for r in found if r.metric in shown]
    words += [f"{VERDICTS[int(r.value)]}, " for r in found if r.metric == "verdict"]
    flags = [r for r in found if r.metric.startswith("flagged: ") and r.value]
    flagged = ", ".join(r.metric.removeprefix("flagged: ") for r in flags)
    return "".join(words) + (f"flagged by {flagged}, " if flagged else "")
