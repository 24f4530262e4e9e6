"""What a study's part of the report is made of, and the part of a study nobody has written one for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from reproduce.report.cells import Cell, Cells, short, times
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


def told(
    study: Study,
    title: str,
    words: str,
    tables: Iterable[Table],
    figures: Iterable[Figure | None] = (),
) -> Section:
    """Return a study's part of the report; what was not run is left out."""
    shown = tuple(table for table in tables if table.rows)
    return Section(study.name, title, words, shown, tuple(f for f in figures if f is not None))


def generic(study: Study) -> Section:
    """Return one table per metric: methods down, targets across."""
    cells = Cells(study.records)
    return told(study, study.name, "", (by_method(cells, m, m, _words) for m in cells.metrics()))


def by_method(
    cells: Cells, metric: str, title: str, words: Callable[[Cell], str], note: str = "", **options: Any
) -> Table:
    """Return a table of a metric: methods down, targets across; `methods` and `targets` if not all."""
    targets = options.get("targets", cells.targets(metric))
    methods = options.get("methods", cells.methods(metric))
    rows = tuple((method, *cells.across(metric, method, targets, words)) for method in methods)
    return Table(title, ("method", *targets), rows, note)


def _words(cell: Cell) -> str:
    spread = "" if cell.spread is None else f" ± {short(cell.spread, 2)}"
    multiple = "" if cell.ratio != cell.ratio else f" ({times(cell.ratio)})"
    return f"{short(cell.value)}{spread}{multiple}"
