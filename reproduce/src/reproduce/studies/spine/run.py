"""Fit, judge against the floor, record; rows already recorded are skipped.

The planar rows have the protocol, keys and settings of the 2-D study, so that a sampler which that study
has kept in the same folder is judged here without being trained again.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pushforward.checks import check_choice
from reproduce import records
from reproduce.records import Header, Record
from reproduce.studies.resuming import begin
from reproduce.studies.row import DONE, Row
from reproduce.studies.spine.student_t import student_t_row
from reproduce.studies.two_d import PRESETS as PLANAR
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.rows import row_of
from reproduce.studies.two_d.store import Store
from reproduce.studies.two_d.trained import sampler_of

STUDY = "spine"
METHODS = ("default", "kl", "fisher")
PLANAR_TARGETS = ("gaussian", "rosenbrock", "donut", "squiggle")
STUDENT_T = ("student_t_5", "student_t_3", "student_t_2")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which rows run: methods on planar targets with several training seeds, and on Student's t with one."""

    preset: str
    methods: tuple[str, ...] = METHODS
    targets: tuple[str, ...] = (*PLANAR_TARGETS, *STUDENT_T)
    seeds: int = 3
    max_steps: int | None = None

    def __post_init__(self):
        for name in self.methods:
            check_choice(name, "methods", METHODS)
        for name in self.targets:
            check_choice(name, "targets", (*PLANAR_TARGETS, *STUDENT_T))

    def replace(self, **changes) -> "Settings":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


PRESETS = {
    "smoke": Settings(preset="smoke", targets=("gaussian", "student_t_5"), seeds=1, max_steps=6),
    "cpu": Settings(preset="cpu"),
}


def rows(settings: Settings) -> list[Row]:
    """Return all rows, Student's t last."""
    found = [Row(m, t, s) for t in PLANAR_TARGETS for s in range(settings.seeds) for m in settings.methods]
    found += [Row(m, t, 0) for t in STUDENT_T for m in settings.methods]
    return [row for row in found if row.target in settings.targets and row.method in settings.methods]


def plan(settings: Settings) -> list[str]:
    """Return the rows for a reader."""
    return [str(row) for row in rows(settings)]


def run(
    settings: Settings,
    folder: str | Path,
    *,
    fresh: bool = False,
    command: str = "pushforward study spine",
    observe: Callable[[str], None] = lambda words: None,
) -> Path:
    """Run all rows that `folder/spine.jsonl` does not hold yet, and return its path."""
    path, store = Path(folder) / f"{STUDY}.jsonl", Store(Path(folder))
    header = Header.of_this_machine(STUDY, settings.preset, 0, command)
    done = begin(path, header, row_of=row_of, fresh=fresh)
    judges = _judges(settings)
    for row in [row for row in rows(settings) if row not in done]:
        started = time.monotonic()
        found = _row(row, settings, store, judges)
        seconds = Record(
            STUDY, settings.preset, row.method, row.target, DONE, time.monotonic() - started, seed=row.seed
        )
        records.append(path, [*(dataclasses.replace(r, study=STUDY) for r in found), seconds])
        observe(f"{row}: {_summary(found)}{seconds.value:.0f} s")
    return path


def _judges(settings: Settings) -> dict[str, Judge]:
    """Return one judge a target: its floors are dear and serve all rows."""
    planar = PLANAR[settings.preset].replace(max_steps=settings.max_steps)
    return {name: Judge(name, planar) for name in PLANAR_TARGETS}


def _row(row: Row, settings: Settings, store: Store, judges: dict[str, Judge]) -> list[Record]:
    if row.target in STUDENT_T:
        return student_t_row(row, settings.preset, settings.max_steps, store.arrays_path.parent)
    judge = judges[row.target]
    sampler, seconds = sampler_of(row, judge, store)
    return [
        judge.paper_ksd(row, sampler.sample),
        judge.score(row, "sliced_w2", sampler.sample, judge.settings.pair_n, judge.settings.pairs),
        judge.record(row, "train_seconds", seconds),
    ]


def _summary(found: list[Record]) -> str:
    ratios = [f"{r.metric} {r.value / r.floor:.3f}x, " for r in found if r.floor]
    return "".join(ratios or [f"{r.metric} {r.value:.3g}, " for r in found])
