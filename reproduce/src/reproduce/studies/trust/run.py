"""Check, count, record."""

import dataclasses
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import equinox as eqx
import jax
import numpy as np

from pushforward.trust import Census, CheckSettings, Report, check
from pushforward.trust.line import BAD, CAUTION, TRUST
from reproduce.records import Record
from reproduce.studies.row import Row
from reproduce.studies.running import Observe, Study, Work, watching
from reproduce.studies.settings import StudySettings
from reproduce.studies.trust.defects import CASES, DEFECTS, EXACT, EXACT_TARGETS, sampler

METHODS = (EXACT, *DEFECTS)


@dataclass(frozen=True, kw_only=True)
class Settings(StudySettings):
    """Which rows run, and how large a check is.

    A row is `replicates` checks of one sampler on one target that share one census of the target; exact
    samplers get `blocks` of them, with a census each, so that no census is judged by its luck.
    """

    study: ClassVar = "trust"
    choices: ClassVar = {"targets": CASES, "exact_targets": CASES, "methods": METHODS}

    targets: tuple[str, ...] = tuple(CASES)
    exact_targets: tuple[str, ...] = EXACT_TARGETS
    methods: tuple[str, ...] = METHODS
    replicates: int = 25
    blocks: int = 4
    power_replicates: int = 20
    check: CheckSettings = dataclasses.field(default_factory=CheckSettings)

    @property
    def settings_of_check(self) -> CheckSettings:
        """The check's own settings, with its chains cut short if that was asked for."""
        return self.check.replace(chain_steps=self.steps(self.check.chain_steps))


PRESETS = {
    "smoke": Settings(
        preset="smoke",
        targets=("gaussian",),
        methods=(EXACT, "one mean 0.1 sd off"),
        replicates=2,
        blocks=1,
        power_replicates=2,
        check=CheckSettings(num_draws=1000, ksd_draws=200, num_bootstraps=199, num_chains=400, chain_steps=4),
    ),
    "cpu": Settings(preset="cpu"),
}
"""`smoke` takes seconds; `cpu` well under an hour on one core."""


def rows(settings: Settings) -> list[Row]:
    """Return all rows, target by target, so that what was compiled for one serves all its rows."""
    found = []
    for target in CASES:
        if target in settings.exact_targets:
            found += [Row(EXACT, target, block) for block in range(settings.blocks)]
        found += [Row(method, target, 0) for method, (_, targets) in DEFECTS.items() if target in targets]
    return [row for row in found if row.method in settings.methods and row.target in settings.targets]


def plan(settings: Settings) -> list[str]:
    """Return the rows for a reader."""
    return [f"{row}: {_replicates(row, settings)} checks" for row in rows(settings)]


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    return Work(lambda row: _records(row, settings), watching("not_trusted", "not_trusted_at_all"))


run = Study("trust", rows, _work).run


def _replicates(row: Row, settings: Settings) -> int:
    return settings.replicates if row.method == EXACT else settings.power_replicates


def _records(row: Row, settings: Settings) -> list[Record]:
    """Take a census, check the replicates against it, and count verdicts and flagged lines."""
    target, asked = CASES[row.target](), settings.settings_of_check
    started = time.monotonic()
    census = Census.take(row.key("census"), target, asked)
    census_seconds = time.monotonic() - started
    draw = eqx.filter_jit(sampler(row.method, target))
    keys = jax.random.split(row.key("checks"), _replicates(row, settings))
    reports = [check(each, draw, target, census=census, settings=asked) for each in keys]

    record = partial(settings.record, row, n=settings.check.num_draws)

    def share(metric: str, values: list[bool]) -> Record:
        return record(metric, np.mean(values), repeats=len(values))

    found = [
        share("not_trusted", [report.verdict != TRUST for report in reports]),
        share("not_trusted_at_all", [report.verdict == BAD for report in reports]),
    ]
    for name in dict.fromkeys(line.name for report in reports for line in report.lines):
        found.append(share(f"flagged: {name}", [_flagged(report, name) for report in reports]))
    found.append(record("census_seconds", census_seconds))
    # The first check compiles, as a user's does; the others tell what the arithmetic costs.
    found.append(record("first_check_seconds", reports[0].seconds))
    later = [report.seconds for report in reports[1:]] or [reports[0].seconds]
    found.append(record("check_seconds", np.median(later), repeats=len(later)))
    return found


def _flagged(report: Report, name: str) -> bool:
    return any(
        line.name == name and level in (CAUTION, BAD)
        for line, level in zip(report.lines, report.levels, strict=True)
    )
