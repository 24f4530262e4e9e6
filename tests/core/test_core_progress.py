"""The progress bar: what it shows in a terminal of any width."""

import io

import pytest
from rich.console import Console

from pushforward.run.progress import progress_bar

ROW = {
    "step": 1500,
    "seconds": 100.0,
    "objective": -1.2345,
    "score_loss": 0.001234,
    "ksd_imq_v": 0.0321,
    "skipped": 0.25,
}


@pytest.mark.parametrize(("width", "told"), [(80, "loss"), (140, "score 0.00123")])
@pytest.mark.parametrize("name", ["rosenbrock", "a target whose name is longer than a line [bold]"])
def test_the_count_is_whole_and_a_row_is_one_line(width, told, name):
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    with progress_bar(name, 20000, show=True, console=console) as update:
        update(ROW)
    # After the last row the terminal may be told to show its cursor again, on a line of its own.
    last = next(line for line in reversed(file.getvalue().splitlines()) if line != "\x1b[?25h")
    assert "1500/20000" in last
    assert "KSD 0.0321" in last
    assert told in last or len(name) > 24
    assert "…" not in last
    assert len(last.rpartition("\x1b[2K")[2]) <= width
