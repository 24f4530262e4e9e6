"""What a check hands back: lines, a verdict, and enough of the draws to look at."""

import html
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from pushforward.trust.line import BAD, CAUTION, NOTE, OK, TRUST, Line, levels, verdict
from pushforward.trust.plots import Pictures as Pictures
from pushforward.trust.plots import figure

COLUMNS = ("line", "verdict", "statistic", "p", "what was found", "its null", "what to do")
COLOURS = {TRUST: "bold green", OK: "green", CAUTION: "bold yellow", BAD: "bold red", NOTE: "dim"}

MEANINGS = {
    TRUST: "no line found a fault that it could tell from chance",
    CAUTION: "a fault was found, though not a large one, or much could not be tested: read the line",
    BAD: "a fault was found that matters: read the line",
}


@dataclass(frozen=True, kw_only=True)
class Report:
    """The answer to "can I trust it?". Print it, or ask for `as_json()` or `as_html()`."""

    target: str
    kind: str
    """What was checked: a sampler, a function, or an array."""
    num_draws: int
    num_judged: int
    """Draws that were judged: fewer than came, where they repeat or depend on each other."""
    level: float
    """The chance that an exact sampler is not trusted, shared by all tests."""
    lines: tuple[Line, ...]
    seconds: float
    pictures: Pictures | None = None

    @property
    def levels(self) -> list[str]:
        """How each line reads when all are weighed together."""
        return levels(self.lines, self.level)

    def _read(self) -> Iterator[tuple[Line, str]]:
        return zip(self.lines, self.levels, strict=True)

    @property
    def verdict(self) -> str:
        """`trust`, `caution` or `do not trust`."""
        return verdict(self.levels)

    @property
    def summary(self) -> str:
        """What was judged, in one sentence."""
        judged = "" if self.num_judged == self.num_draws else f", {self.num_judged:,} judged"
        return (
            f"{self.target}: {self.num_draws:,} draws of a {self.kind}{judged}; "
            f"an exact sampler fails in at most {self.level:.0%} of checks; {self.seconds:.1f} s"
        )

    def __getitem__(self, name: str) -> Line:
        """Return the line of that name."""
        named = {line.name: line for line in self.lines}
        if name not in named:
            raise KeyError(f"there is no line {name!r}; there are {', '.join(named)}.")
        return named[name]

    def as_json(self) -> dict[str, Any]:
        """Return everything but the pictures, as strict JSON can hold it."""
        told = ("target", "kind", "verdict", "num_draws", "num_judged", "level", "seconds")
        lines = [asdict(line) | {"level": level} for line, level in self._read()]
        return _strict({name: getattr(self, name) for name in told} | {"lines": lines})

    def dumps(self) -> str:
        """Return the JSON as text."""
        return json.dumps(self.as_json(), indent=2, allow_nan=False)

    def as_html(self) -> str:
        """Return a part of a page: the verdict, the lines, and the plots."""
        head = "".join(f"<th scope='col'>{title}</th>" for title in COLUMNS)
        body = ""
        for line, level in self._read():
            number = f"{line.statistic:.3g} ({line.measure})"
            cells = (level, number, line.p_words, line.told, line.null, line.advice)
            data = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            body += f"<tr><th scope='row'>{html.escape(line.title)}</th>{data}</tr>"
        return (
            f"<section><h3>Check of {html.escape(self.target)}: {self.verdict}</h3>"
            f"<p>{html.escape(MEANINGS[self.verdict].capitalize())}. {html.escape(self.summary)}.</p>"
            f"<div class='scroll' tabindex='0'><table class='words'><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table></div>{figure(self.pictures) if self.pictures else ''}</section>"
        )

    def _repr_html_(self) -> str:
        return self.as_html()

    def __repr__(self) -> str:
        names = ", ".join(line.name for line in self.lines)
        return f"Report({self.verdict}: {self.num_draws:,} draws of {self.target}; print it: {names})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        word = self.verdict
        yield Text.assemble((word, COLOURS[word]), f": {MEANINGS[word]}.")
        yield Text(self.summary, style="dim")
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for title in ("", "line", "statistic", "p", "what was found"):
            table.add_column(title, overflow="fold", no_wrap=title in ("", "statistic", "p"))
        for line, level in self._read():
            words = Text(line.told)
            words.append(f"\n{line.measure}; null: {line.null}", style="dim")
            if level in (CAUTION, BAD):
                words.append(f"\n{line.advice}", style="italic")
            cells = Text(level, COLOURS[level]), Text(line.title), Text(f"{line.statistic:.3g}")
            table.add_row(*cells, Text(line.p_words), words)
        yield table

    def __str__(self) -> str:
        console = Console(width=110, highlight=False, force_terminal=False, no_color=True)
        with console.capture() as capture:
            console.print(self)
        return capture.get().rstrip("\n")


def _strict(value: Any) -> Any:
    """Return the value with NumPy's scalars as Python's, and what is not finite as `None`."""
    if isinstance(value, dict):
        return {str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
