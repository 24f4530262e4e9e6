"""Run a study: every row that is not yet recorded, one after the other."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pushforward.programs import let_programs_go
from reproduce import records
from reproduce.records import Header, Record
from reproduce.studies.row import DONE, Row, counted, row_of

Observe = Callable[[str], None]


class Work(NamedTuple):
    """What a study does with a row: its records, their summary, the row of a record.

    `clear` forgets what earlier rows left beside the records; `after` is called once a row is recorded.
    """

    of: Callable[[Row], list[Record]]
    summary: Callable[[list[Record]], str]
    row_of: Callable[[Record], Row] = row_of
    clear: Callable[[], None] = lambda: None
    after: Callable[[Row], None] = lambda row: None


def watching(*metrics: str) -> Callable[[list[Record]], str]:
    """Return a summary that tells some metrics, or all; also as multiples of their floors."""

    def summary(found: list[Record]) -> str:
        shown = [r for r in found if not metrics or r.metric in metrics]
        multiples = (f" ({r.value / r.floor:.2f}x)" if r.floor else "" for r in shown)
        return "".join(f"{r.metric} {r.value:.3g}{m}, " for r, m in zip(shown, multiples, strict=True))

    return summary


class Study(NamedTuple):
    """A study: its rows, how they are run, and the recipe that a header names, by the settings."""

    name: str
    rows: Callable[[Any], list[Row]]
    work: Callable[[Any, Path, Observe], Work]
    recipe: Callable[[Any], Any] = lambda settings: None

    def plan(self, settings: Any) -> list[str]:
        """Return for a reader how many rows each method has."""
        return counted(self.rows(settings))

    def run(
        self,
        settings: Any,
        folder: str | Path,
        *,
        fresh: bool = False,
        again: bool = False,
        command: str = "",
        observe: Observe = lambda words: None,
    ) -> Path:
        """Run all rows that `folder/STUDY.jsonl` does not hold yet, and return its path.

        A row is added in one write. `fresh` begins again, `again` forgets the rows asked for; `command` goes
        into the header, and `observe` is told one line a row.
        """
        path = Path(folder) / f"{self.name}.jsonl"
        # First, as it may read data: a missing folder must not cost the records of an older run.
        work = self.work(settings, Path(folder), observe)
        command = command or f"pushforward study {self.name.replace('_', '-')}"
        header = Header.of_this_machine(self.name, settings.preset, 0, command, self.recipe(settings))
        asked = self.rows(settings)
        done = begin(path, header, work, asked if again else (), fresh=fresh)
        todo = [row for row in asked if row not in done]
        observe(f"{len(done)} rows are recorded, {len(todo)} to go")
        began = time.monotonic()
        for number, row in enumerate(todo, start=1):
            let_programs_go()
            started = time.monotonic()
            found = work.of(row)
            seconds = time.monotonic() - started
            records.append(path, [*found, settings.record(row, DONE, seconds)])
            work.after(row)
            minutes = (time.monotonic() - began) / 60
            told = f"{work.summary(found)}{seconds:.0f} s, {minutes:.1f} min in all"
            observe(f"{number}/{len(todo)} {row}: {told}")
        return path


def begin(path: Path, header: Header, work: Work, forget: Sequence[Row] = (), *, fresh: bool) -> set[Row]:
    """Return the rows that are recorded to their end, in a file that holds nothing else; `forget` goes."""
    if fresh or not path.exists():
        work.clear()
        records.write(path, header)
        return set()
    records.mend(path)
    old, held = records.read(path)
    refuse_other_preset(path, old, header.preset)
    done = {work.row_of(record) for record in held if record.metric == DONE} - set(forget)
    whole = [record for record in held if work.row_of(record) in done]
    if len(whole) < len(held):
        records.write(path, old, whole)
    return done


def refuse_other_preset(path: Path, old: Header, preset: str) -> None:
    """Refuse to add to the records of another preset."""
    if old.preset != preset:
        raise ValueError(
            f"`folder` holds the preset {old.preset!r} in {path.name}; got {preset!r}. "
            "Choose another folder, or begin again with `--fresh`."
        )
