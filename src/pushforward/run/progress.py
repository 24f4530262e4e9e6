"""A progress bar for the loop: an observer of its rows, and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pushforward.training.loop import Row

_SHOWN = {"objective": "loss", "score_loss": "score", "ksd_imq_v": "KSD", "skipped": "skipped"}


def _words(row: Row) -> str:
    parts = [
        f"{label} {row[name]:.3g}"
        for name, label in _SHOWN.items()
        if name in row and (name != "skipped" or row[name] > 0)
    ]
    return "  ".join([f"{row['step'] / max(row['seconds'], 1e-9):,.0f} steps/s", *parts])


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
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=console or Console(stderr=True), transient=False) as bar:
        task = bar.add_task(description, total=num_steps, words="compiling")
        yield lambda row: bar.update(task, completed=row["step"], words=_words(row))
