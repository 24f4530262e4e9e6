"""What a study's part of the report is made of: tables, as Markdown and as HTML, and figures."""

import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from reproduce.report.cells import Cell, Cells, Study, short, times


@dataclass(frozen=True)
class Table:
    """Rows of text under a heading; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: str = ""  # what a reader must know to read it
    wraps: bool = False  # whether its cells are sentences

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"a row of {self.title!r} has {len(row)} cells; {len(self.columns)} columns."
                )

    def markdown(self) -> str:
        """Return the table in Markdown, with its heading."""
        lines = [f"## {self.title}", ""]
        if self.words:
            lines += [self.words, ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        side = "---" if self.wraps else "---:"
        lines.append("|" + "|".join(["---"] + [side] * (len(self.columns) - 1)) + "|")
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def as_html(self) -> str:
        """Return the table in HTML, in a box that scrolls sideways by itself."""
        head = "".join(f"<th scope='col'>{html.escape(c)}</th>" for c in self.columns)
        body = "".join(
            f"<tr><th scope='row'>{html.escape(row[0])}</th>"
            + "".join(f"<td{_mark(cell)}>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        style = " class='words'" if self.wraps else ""
        words = f"<p>{prose(self.words)}</p>" if self.words else ""
        return (
            f"<section><h3>{html.escape(self.title)}</h3>{words}<div class='scroll' tabindex='0'>"
            f"<table{style}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>"
        )


def table_in(title: str, text: str) -> Table:
    """Return the table that stands in Markdown in a page's words, whose cells are sentences."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return Table(title, tuple(lines[0]), tuple(map(tuple, lines[2:])), wraps=True)


def prose(text: str) -> str:
    """Return text for a page, with what stands between back-quotes as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text)).replace("\n\n", "</p><p>")


def _mark(cell: str) -> str:
    """Colour the cells that say whether a bar was met."""
    for word, name in (("met", "good"), ("missed", "bad"), ("diverged", "bad")):
        if cell == word or cell.startswith(word + " "):
            return f" class='{name}'"
    return ""


@dataclass(frozen=True)
class Figure:
    """A picture in a file format that browsers show."""

    name: str  # the file's name, with its suffix: `.png` or `.svg`
    data: bytes
    title: str
    words: str = ""


@dataclass(frozen=True)
class Section:
    """One study, told."""

    name: str
    title: str
    words: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...] = ()


class Prose(NamedTuple):
    """The words of a page, which stand in `words/NAME.md`: its title, its introduction, notes by title."""

    title: str
    intro: str
    notes: dict[str, str]


def prose_of(name: str) -> Prose:
    """Read the words of a page; a page without a file has its name for a title."""
    path = Path(__file__).parent / "words" / f"{name}.md"
    if not path.exists():
        return Prose(name, "", {})
    first, *rest = path.read_text(encoding="utf-8").removeprefix("# ").split("\n## ")
    title, _, intro = first.partition("\n")
    return Prose(title, intro.strip(), {k: v.strip() for k, _, v in (each.partition("\n") for each in rest)})


def told(
    study: Study, tables: Iterable[Table], figures: Iterable[Figure | None] = (), **values: str
) -> Section:
    """Return a study's part of the report in the words of its file; what was not run is left out.

    `values` are filled in where the introduction names them in braces.
    """
    words = prose_of(study.name)

    def note(title: str) -> str:
        # What a table is of, where it is not of the main target, stands in brackets at the end of its title.
        return words.notes.get(title) or words.notes.get(title.rsplit(" (", 1)[0], "")

    shown = tuple(replace(t, words=t.words or note(t.title)) for t in tables if t.rows)
    drawn = tuple(replace(f, words=f.words or note(f.title)) for f in figures if f is not None)
    intro = words.intro.format(**values) if values else words.intro
    return Section(study.name, words.title, intro, shown, drawn)


def generic(study: Study) -> Section:
    """Return one table per metric: methods down, targets across."""
    cells = Cells(study.records)
    return told(study, (by_method(cells, m, m, _words) for m in cells.metrics()))


def by_method(cells: Cells, metric: str, title: str, words: Callable[[Cell], str], **options: Any) -> Table:
    """Return a table of a metric: methods down, targets across; `methods` and `targets` if not all."""
    targets = options.get("targets", cells.targets(metric))
    methods = options.get("methods", cells.methods(metric))
    rows = tuple((method, *cells.across(metric, method, targets, words)) for method in methods)
    return Table(title, ("method", *targets), rows)


def by_target(
    cells: Cells, metric: str, title: str, methods: Iterable[str], words: Callable[[Cell | None], str]
) -> Table:
    """Return a table of a metric: targets down, those of the methods across that have it."""
    shown = [method for method in methods if method in cells.methods(metric)]
    rows = ((t, *(words(cells.get(metric, method, t)) for method in shown)) for t in cells.targets(metric))
    return Table(title, ("target", *shown), tuple(rows))


def _words(cell: Cell) -> str:
    spread = "" if cell.spread is None else f" ± {short(cell.spread, 2)}"
    multiple = "" if cell.ratio != cell.ratio else f" ({times(cell.ratio)})"
    return f"{short(cell.value)}{spread}{multiple}"
