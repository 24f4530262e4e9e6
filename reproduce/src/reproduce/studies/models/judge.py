"""One fit of one model: trained as a user would, judged by the check and against the truth."""

import math
import time
from collections.abc import Callable

import numpy as np

from pushforward.base import NamedTarget
from pushforward.sampler import Sampler
from pushforward.trust import check
from pushforward.trust.line import BAD, CAUTION, VERDICTS
from reproduce.records import Record, of_recipe
from reproduce.studies.fitting import kept_or_fitted, told_of_itself
from reproduce.studies.models.cases import CASES
from reproduce.studies.models.reference import Truth, numbers, sd_error, truths
from reproduce.studies.models.settings import Settings
from reproduce.studies.row import Row
from reproduce.studies.store import Store

GOOD = ("FINISHED", "CONVERGED", "UNTRAINED")
EXPECTED_SIZE = math.sqrt(2.0 / math.pi)
"""The mean size of a standard normal: from a standard error to what an exact sampler is off by."""


def fit_row(row: Row, settings: Settings, store: Store, observe: Callable[[str], None]) -> list[Record]:
    """`pf.fit(key, target)`, and nothing else; a crash is a record, not the end of the study."""
    target = CASES[row.target].target(row.method)
    how = settings.how
    clock = _Clock()
    kept = kept_or_fitted(row, target, how, store, lambda done: {"study_figures": clock.figures()}, observe)
    if kept is None:
        return of_recipe(how.recipe, settings.figures(row, {"crashed": 1, **clock.figures()}))
    return of_recipe(how.recipe, [
        *settings.figures(row, {"crashed": 0, "dim": target.dim}),
        *_costs(row, settings, kept),
        *_errors(row, settings, kept, target, truths(row.target, settings, store)),
        *_verdict(row, settings, kept, target),
    ])  # fmt: skip


class _Clock:
    """What a fit costs, on the wall and of the processor: other work lengthens the first alone."""

    def __init__(self) -> None:
        self._wall, self._processor = time.monotonic(), time.process_time()

    def figures(self) -> dict[str, float]:
        """Return the seconds since it was made."""
        return {
            "train_seconds": time.monotonic() - self._wall,
            "train_processor_seconds": time.process_time() - self._processor,
        }


def _costs(row: Row, settings: Settings, sampler: Sampler) -> list[Record]:
    about = sampler.about
    found = {**about["study_figures"], "outcome_good": float(about["outcome"] in GOOD)}
    return settings.figures(row, found | told_of_itself(about))


def _errors(
    row: Row, settings: Settings, sampler: Sampler, target: NamedTarget, truth: dict[str, Truth]
) -> list[Record]:
    """Hold every number that both have, derived ones included, against the truth."""
    n = settings.num_draws
    draws = sampler.draws(row.key("draws"), n)
    if target.derive is not None:
        draws = draws.derive(target)
    found: list[Record] = []
    means, sds = _Worst(), _Worst()
    for name, values in numbers(draws.values, 1):
        if name not in truth:
            continue
        known = truth[name]
        mean, sd = (values.mean() - known.mean) / known.sd, values.std() / known.sd
        mean_floor = means.add(mean, math.hypot(known.mean_error, 1.0 / math.sqrt(n)))
        sds.add(sd - 1.0, math.hypot(known.sd_error, sd_error(values, float(n))))
        found += [
            settings.record(row, f"mean_error: {name}", mean, n=n, floor=mean_floor),
            settings.record(row, f"sd_ratio: {name}", sd, n=n),
        ]
    return [
        *found,
        settings.record(row, "mean_error_max", means.value, n=n, floor=means.floor),
        settings.record(row, "sd_error_max", sds.value, n=n, floor=sds.floor),
    ]


class _Worst:
    """The largest of many errors, and what it would be of an exact sampler: each by its standard error."""

    def __init__(self) -> None:
        self._errors: list[float] = []
        self._scales: list[float] = []

    def add(self, error: float, scale: float) -> float:
        """Add an error and its standard error; return the size that chance alone would give it."""
        self._errors.append(error)
        self._scales.append(scale)
        return EXPECTED_SIZE * scale

    @property
    def value(self) -> float:
        """The largest size; not a number if any is not."""
        return float(np.max(np.abs(self._errors)))

    @property
    def floor(self) -> float:
        """The mean largest size of independent normals of these scales."""
        chance = np.random.default_rng(0).normal(size=(1000, len(self._scales)))
        return float(np.abs(chance * self._scales).max(axis=1).mean())


def _verdict(row: Row, settings: Settings, sampler: Sampler, target: NamedTarget) -> list[Record]:
    """Return what `pf.check` says, without the truth: its verdict by rank, and the lines it flags."""
    report = check(row.key("check"), sampler, target, settings=settings.check)
    n = settings.check.num_draws
    flags = [
        settings.record(row, f"flagged: {line.name}", float(level in (CAUTION, BAD)), n=n)
        for line, level in zip(report.lines, report.levels, strict=True)
    ]
    return [
        settings.record(row, "verdict", VERDICTS.index(report.verdict), n=n),
        *flags,
        settings.record(row, "check_seconds", report.seconds),
    ]
