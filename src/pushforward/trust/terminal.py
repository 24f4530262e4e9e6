"""A report in the terminal: the verdict, then a line or two for each piece of evidence."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pushforward.trust.line import BAD, CAUTION, NOTE, OK, Line

if TYPE_CHECKING:
    from pushforward.trust.report import Report

COLOURS = {"trust": "bold green", OK: "green", CAUTION: "bold yellow", BAD: "bold red", NOTE: "dim"}

MEANINGS = {
    "trust": "no line found a fault that it could tell from chance",
    CAUTION: "a fault was found, though not a large one: read the line",
    BAD: "a fault was found that matters: read the line",
}


def render(report: "Report") -> Iterator[RenderableType]:
    """Yield what the terminal shows."""
    word = report.verdict
    yield Text.assemble((word, COLOURS[word]), f": {MEANINGS[word]}.")
    yield Text(summary(report), style="dim")
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("", "line", "statistic", "p", "what was found"):
        table.add_column(title, overflow="fold", no_wrap=title in ("", "statistic", "p"))
    for line, level in zip(report.lines, report.levels, strict=True):
        words = Text(line.found)
        words.append(f"\n{line.measure}; null: {line.null}", style="dim")
        if level in (CAUTION, BAD):
            words.append(f"\n{line.advice}", style="italic")
        table.add_row(
            Text(level, COLOURS[level]),
            Text(line.title),
            Text(f"{line.statistic:.3g}"),
            Text(p_words(line)),
            words,
        )
    yield table


def summary(report: "Report") -> str:
    """Return what was judged, in one sentence."""
    judged = "" if report.num_judged == report.num_draws else f", {report.num_judged:,} judged"
    return (
        f"{report.target}: {report.num_draws:,} draws of a {report.kind}{judged}; "
        f"an exact sampler fails in at most {report.level:.0%} of checks; {report.seconds:.1f} s"
    )


def p_words(line: Line) -> str:
    """Return the p-value, or a dash where there is none."""
    if line.p_value is None:
        return "-"
    return f"{line.p_value:.2g}" if line.p_value >= 1e-4 else "< 1e-4"
