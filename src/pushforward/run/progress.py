"""A progress bar for the loop: an observer of its rows, and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from pushforward.training.loop import Row

_SHOWN = {
    "efficiency": "efficiency",
    "ksd_imq_v": "KSD",
    "objective": "loss",
    "skipped": "skipped",
    "score_loss": "score",
}
"""What is told of a row, the most important first: where a terminal is narrow, the last are left out."""


def _words(row: Row, room: int) -> str:
    told = [name for name in _SHOWN if name in row and (name != "skipped" or row[name] > 0)]
    parts = [f"{_SHOWN[name]} {row[name]:.3g}" for name in told]
    parts.insert(2, f"{row['step'] / max(row['seconds'], 1e-9):,.0f} steps/s")
    while len("  ".join(parts)) > room:
        parts.pop()
    return "  ".join(parts)


@contextmanager
def progress_bar(
    description: str, num_steps: int, *, show: bool, console: Console | None = None
) -> Iterator[Callable[[Row], None]]:
    """Yield an observer that draws a bar while the block runs; with `show=False`, one that does nothing.

    The bar goes to standard error, so that standard output stays clean for pipes.
    """
    if not show:
        yield lambda row: None
        return
    console, description = console or Console(stderr=True), description[:24]
    width = 24 if console.width >= 100 else 10
    whole = Column(no_wrap=True)
    count, time = MofNCompleteColumn(table_column=whole), TimeRemainingColumn(table_column=whole)
    name, words = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[words]}")
    # Beside the words: the name, the bar, "150/2000", "0:01:43", and a space after each.
    room = console.width - len(description) - width - 2 * len(str(num_steps)) - len("/0:00:00") - 5
    with Progress(name, BarColumn(width), count, time, words, console=console) as bar:
        task = bar.add_task(description, total=num_steps, words="compiling")
        yield lambda row: bar.update(task, completed=row["step"], words=_words(row, room))
