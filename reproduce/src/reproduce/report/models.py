"""Models that users bring, told: means and sds against long NUTS, and what the check says where they miss."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from reproduce.records import Record
from reproduce.report.cells import Cells, Study, short
from reproduce.report.section import Section, Table, told

MAX_MEAN, MAX_SD = 0.1, 0.1
FLAG = "flagged: "
VERDICTS = ("trust", "caution", "do not trust")


class FitOf(NamedTuple):
    """The figures of one fit."""

    front: str
    model: str
    seed: int
    figures: dict[str, Record]

    def __str__(self) -> str:
        return f"{self.model}, {self.front}, seed {self.seed}"

    def get(self, metric: str) -> float:
        """Return a figure, or NaN where it was not measured."""
        record = self.figures.get(metric)
        return math.nan if record is None else record.value

    @property
    def within(self) -> bool:
        """Whether all means and sds are within the bar."""
        return self.get("mean_error_max") <= MAX_MEAN and self.get("sd_error_max") <= MAX_SD

    @property
    def flagged(self) -> bool:
        """Whether the check says something other than `trust`."""
        return self.get("verdict") > 0

    @property
    def verdict(self) -> str:
        """The check's verdict, in words, and the lines that are behind it."""
        if math.isnan(self.get("verdict")):
            return "-"
        lines = [m.removeprefix(FLAG) for m in self.figures if m.startswith(FLAG) and self.get(m)]
        words = VERDICTS[int(self.get("verdict"))]
        return f"{words} ({', '.join(lines)})" if lines else words

    @property
    def bar(self) -> str:
        """Whether the bar was met, and by which half of it."""
        if self.get("crashed"):
            return "missed (crashed)"
        if self.within:
            return "met"
        return "met (flagged)" if self.flagged else "missed"


def models(study: Study) -> Section:
    """Return the tables; what was not run is left out."""
    fits = list(_fits(study.records))
    tables = (_bars(fits), _by_parameter(fits), _references(study.records), _costs(fits))
    return told(study, tables)


def _fits(records: list[Record]) -> Iterator[FitOf]:
    groups: dict[tuple[str, str, int], dict[str, Record]] = {}
    for r in records:
        groups.setdefault((r.target, r.method, r.seed or 0), {})[r.metric] = r
    for (model, front, seed), figures in sorted(groups.items()):
        if "crashed" in figures:
            yield FitOf(front, model, seed, figures)


def _bars(fits: list[FitOf]) -> Table:
    rows = [
        (
            str(fit),
            str(int(fit.get("dim"))) if "dim" in fit.figures else "-",
            _with_floor(fit, "mean_error_max"),
            _with_floor(fit, "sd_error_max"),
            fit.verdict,
            fit.bar,
        )
        for fit in fits
    ]
    return Table(
        "Means and sds against long NUTS",
        ("model", "dim", "worst error of a mean, in sd", "worst relative error of an sd", "check", "bar"),
        tuple(rows),
        wraps=True,
    )


def _with_floor(fit: FitOf, metric: str) -> str:
    record = fit.figures.get(metric)
    if record is None:
        return "-"
    floor = "" if record.floor is None else f" ({short(record.floor, 2)})"
    return f"{short(record.value)}{floor}"


def _by_parameter(fits: list[FitOf]) -> Table:
    """Return, for every parameter of every model, the worst of its numbers over seeds and front ends."""
    means: dict[tuple[str, str], list[float]] = {}
    ratios: dict[tuple[str, str], list[float]] = {}
    for fit in fits:
        for metric, record in fit.figures.items():
            for prefix, found in (("mean_error: ", means), ("sd_ratio: ", ratios)):
                if metric.startswith(prefix):
                    name = metric.removeprefix(prefix).partition("[")[0]
                    found.setdefault((fit.model, name), []).append(record.value)
    rows = [
        (
            f"{model}: {name}",
            str(len(values)),
            short(max(values, key=abs)),
            f"{min(ratios[model, name]):.3f} to {max(ratios[model, name]):.3f}",
        )
        for (model, name), values in means.items()
    ]
    return Table(
        "Parameter by parameter",
        ("model: parameter", "numbers", "worst error of a mean, in sd", "sd over NUTS's sd"),
        tuple(rows),
    )


def _references(records: list[Record]) -> Table:
    cells = Cells(records)
    rows = []
    for target in cells.targets("rhat"):
        rhat = cells.get("rhat", "nuts", target)
        draws, words = ("0", "-") if rhat is None else (f"{rhat.n or 0:,}", f"{rhat.value:.4f}")
        rest = (cells.value(m, "nuts", target) for m in ("ess", "divergent", "reference_seconds"))
        rows.append((target, draws, words, *map(short, rest)))
    return Table(
        "The references",
        ("model", "draws", "largest R-hat", "least effective draws", "share divergent", "seconds"),
        tuple(rows),
    )


def _costs(fits: list[FitOf]) -> Table:
    metrics = {
        "train_seconds": "fit",
        "train_processor_seconds": "of the processor",
        "seconds: teacher": "of it, teacher",
        "seconds: train": "of it, training",
        "check_seconds": "check",
        "efficiency": "efficiency",
    }
    rows = [(str(fit), *(short(fit.get(m) if m in fit.figures else None) for m in metrics)) for fit in fits]
    return Table("Seconds", ("model", *metrics.values()), tuple(rows))
