"""How commands talk to a terminal: results on standard output, all the rest on standard error."""

import time
import unicodedata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-=+*%#"


def stdout() -> Console:
    """Return a console for results; made anew, since tests and pipes replace the stream."""
    return Console(highlight=False)


def stderr() -> Console:
    """Return a console for progress, notes and errors."""
    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Say something that is not a result, on standard error."""
    stderr().print(Text(text), soft_wrap=True)


def wrote(words: str, path: Path, started: float) -> None:
    """Say what a file holds, how large it is and how long it took since `time.monotonic()` was `started`."""
    note(f"{words} ({size(path.stat().st_size)}, {time.monotonic() - started:.1f} s).")


def clean(value: Any, limit: int = 200) -> str:
    """Return text that is safe to print: what a file says must not steer the terminal."""
    letters = str(value)[: limit + 1]
    text = "".join(" " if unicodedata.category(each).startswith("C") else each for each in letters)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pairs(rows: list[tuple[str, str]]) -> Table:
    """Return a table of names and values without lines: for summaries."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def spark(values: list[float], *, ascii_only: bool = False) -> str:
    """Return a line of small bars, one per value, between the smallest and the largest."""
    ramp, low = ASCII_BLOCKS if ascii_only else BLOCKS, min(values, default=0.0)
    span = (max(values, default=0.0) - low) or 1.0
    return "".join(ramp[round((value - low) / span * (len(ramp) - 1))] for value in values)


def number(value: Any) -> str:
    """Return a number with as many digits as a reader can use; a missing one as a dash."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-" if value is None else clean(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def size(num_bytes: int | float) -> str:
    """Return a size in the largest unit that keeps it above one."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:,.3g} TB"


def in_words(metric: Any) -> str:
    """Return a figure beside its floor: `0.0921  (1.00 times the floor, 0.0918)`."""
    if not isinstance(metric, dict):
        return number(metric)
    value, floor = metric.get("value"), metric.get("floor")
    if value is None:
        return "not finite"
    if isinstance(value, float) and isinstance(floor, float) and floor > 0:
        return f"{number(value)}  ({value / floor:.2f} times the floor, {number(floor)})"
    return number(value)
