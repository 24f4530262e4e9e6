"""How each row of the study is run."""

from collections.abc import Callable
from pathlib import Path

from pushforward.trust.line import VERDICTS
from reproduce.records import Header, Record
from reproduce.studies.models.cases import REFERENCE
from reproduce.studies.models.judge import fit_row
from reproduce.studies.models.reference import reference_row
from reproduce.studies.models.rows import rows
from reproduce.studies.models.settings import STUDY, Settings
from reproduce.studies.row import Row
from reproduce.studies.running import Work, run_rows
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

    **Arguments:**

    - `settings`: one of `PRESETS`, or changed from it.
    - `folder`: where the records are, or will be.
    - `fresh`: begin again, whatever is there; chains of NUTS are kept, since no fit has touched them.
    - `command`: written into the header.
    - `observe`: is told a line at a time.
    """
    path, store = Path(folder) / f"{STUDY}.jsonl", Store(Path(folder), STUDY)
    header = Header.of_this_machine(STUDY, settings.preset, 0, command, settings.how.recipe)

    def records_of(row: Row) -> list[Record]:
        if row.method == REFERENCE:
            return reference_row(row, settings, store)
        return fit_row(row, settings, store, observe)

    work = Work(records_of, _summary, clear=store.clear)
    return run_rows(path, header, rows(settings), work, fresh=fresh, observe=observe)


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches."""
    shown = ("rhat", "ess", "mean_error_max", "sd_error_max", "train_seconds", "check_seconds")
    words = [f"{r.metric} {r.value:.3g}, " for r in found if r.metric in shown]
    words += [f"{VERDICTS[int(r.value)]}, " for r in found if r.metric == "verdict"]
    flags = [r for r in found if r.metric.startswith("flagged: ") and r.value]
    flagged = ", ".join(r.metric.removeprefix("flagged: ") for r in flags)
    return "".join(words) + (f"flagged by {flagged}, " if flagged else "")
