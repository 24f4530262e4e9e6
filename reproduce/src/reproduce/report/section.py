"""What a study's part of the report is made of, and the part of a study nobody has written one for."""

from dataclasses import dataclass

from reproduce.report.cells import Cells, short, times
from reproduce.report.results import Study
from reproduce.report.table import Table


@dataclass(frozen=True)
class Figure:
    """A picture in a file format that browsers show."""

    name: str
    """The file's name, with its suffix: `.png` or `.svg`."""
    data: bytes
    title: str
    words: str


@dataclass(frozen=True)
class Section:
    """One study, told."""

    name: str
    title: str
    words: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...] = ()


def generic(study: Study) -> Section:
    """Return one table per metric: methods down, targets across."""
    cells = Cells(study.records)
    return Section(study.name, study.name, "", tuple(metric_table(cells, m) for m in cells.metrics()))


def metric_table(cells: Cells, metric: str) -> Table:
    """Return every figure of a metric, with its spread and as a multiple of its floor."""
    targets = cells.targets(metric)
    rows = []
    for method in cells.methods(metric):
        found = [cells.get(metric, method, target) for target in targets]
        rows.append((method, *("-" if c is None else _words(c) for c in found)))
    return Table(metric, ("method", *targets), tuple(rows))


def _words(cell) -> str:
    spread = "" if cell.spread is None else f" ± {short(cell.spread, 2)}"
    multiple = "" if cell.ratio != cell.ratio else f" ({times(cell.ratio)})"
    return f"{short(cell.value)}{spread}{multiple}"
