"""From records to figures: a folder read, means over training seeds, numbers as a reader can use them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pushforward.arrays import read_npz
from reproduce.records import Header, Record, read


@dataclass(frozen=True)
class Study:
    """One study's results."""

    header: Header
    records: list[Record]
    arrays: dict[str, np.ndarray]  # what figures are drawn from; empty where the study saved none

    @property
    def name(self) -> str:
        """The study's name."""
        return self.header.study


def read_results(folder: str | Path) -> list[Study]:
    """Read all `*.jsonl` of a folder, or say that there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}. Give the one a study wrote to, such as `results`.")
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise ValueError(
            f"there are no records (*.jsonl) in {folder}. "
            f"Make some first: `pushforward study two-d --preset smoke --out {folder}`."
        )
    return [_study(path) for path in paths]


def _study(path: Path) -> Study:
    header, records = read(path)
    beside, arrays = path.with_name(f"{path.stem}_draws.npz"), {}
    if beside.exists():
        arrays = read_npz(beside)
    return Study(header, records, arrays)


@dataclass(frozen=True)
class Cell:
    """A metric of a method on a target, over all its training seeds."""

    value: float
    spread: float | None  # the mean spread over repeats within a seed
    floor: float | None
    n: int | None
    repeats: int  # of all seeds together
    seeds: int
    worst: float  # the largest value of any seed

    @property
    def ratio(self) -> float:
        """The value over its floor; NaN where there is no floor to stand on."""
        return self.value / self.floor if self.floor and self.floor > 0 else math.nan

    @property
    def error(self) -> float:
        """The standard error of the value, as far as the repeats tell it."""
        return (self.spread or 0.0) / math.sqrt(max(self.repeats, 1))


class Cells:
    """All records of a study, by metric, method and target."""

    def __init__(self, records: list[Record]):
        """Group the records."""
        self._groups: dict[tuple[str, str, str], list[Record]] = {}
        for record in records:
            self._groups.setdefault((record.metric, record.method, record.target), []).append(record)

    def get(self, metric: str, method: str, target: str) -> Cell | None:
        """Return the mean over seeds, or `None` where nothing was measured."""
        group = self._groups.get((metric, method, target))
        return _mean(group) if group else None

    def value(self, metric: str, method: str, target: str) -> float | None:
        """Return the mean alone."""
        cell = self.get(metric, method, target)
        return None if cell is None else cell.value

    def across(
        self, metric: str, method: str, targets: Iterable[str], words: Callable[[Cell], str]
    ) -> list[str]:
        """Return what is said of each target, a dash where nothing was measured."""
        return ["-" if (c := self.get(metric, method, t)) is None else words(c) for t in targets]

    def methods(self, metric: str) -> list[str]:
        """Return the methods with this metric, in the order they were measured."""
        return list(dict.fromkeys(method for m, method, _ in self._groups if m == metric))

    def targets(self, metric: str) -> list[str]:
        """Return the targets with this metric."""
        return list(dict.fromkeys(target for m, _, target in self._groups if m == metric))

    def metrics(self) -> list[str]:
        """Return all metrics."""
        return list(dict.fromkeys(m for m, _, _ in self._groups))


def _mean(group: list[Record]) -> Cell:
    values = [r.value for r in group]
    spreads = [r.spread for r in group if r.spread is not None]
    floors = [r.floor for r in group if r.floor is not None]
    return Cell(
        value=sum(values) / len(values),
        spread=sum(spreads) / len(spreads) if spreads else None,
        floor=sum(floors) / len(floors) if floors else None,
        n=group[0].n,
        repeats=sum(r.repeats or 1 for r in group),
        seeds=len({r.seed for r in group}),
        worst=math.nan if any(map(math.isnan, values)) else max(values),
    )


def short(value: float | None, digits: int = 3) -> str:
    """Return a number with `digits` figures that count; a dash for none, words for what broke down."""
    if value is None:
        return "-"
    if math.isnan(value):
        return "diverged"
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    if places < -2 or places > 8:
        return f"{value:.{digits - 1}e}"
    return f"{round(value, places):,.{max(places, 0)}f}"


def times(ratio: float) -> str:
    """Return a multiple: `1.04x`."""
    if math.isnan(ratio):
        return "-"
    return f"{ratio:.2f}x" if ratio < 100 else f"{ratio:,.0f}x"


def multiple(cell: Cell | None) -> str:
    """Return a figure, and the multiple of its floor where it has one."""
    if cell is None:
        return "-"
    return short(cell.value) if math.isnan(cell.ratio) else f"{short(cell.value)} ({times(cell.ratio)})"


def in_order(methods: list[str], order: Sequence[str]) -> list[str]:
    """Return methods as the tables list them, unknown ones last."""
    return sorted(methods, key=lambda m: order.index(m) if m in order else len(order))
