import subprocess
import sys
from pathlib import Path

import pytest
from cli_sizes import TINY
from typer.testing import CliRunner

from pushforward.cli import app

# A trained run is made once and only read: copy it before breaking it.


@pytest.fixture(scope="session")
def invoke():
    """`invoke("fit", "rosenbrock", ...)`: run a command in this process."""
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [str(word) for word in words])


@pytest.fixture(scope="session")
def run_folder(invoke, tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("runs") / "rosenbrock"
    result = invoke("fit", "rosenbrock", *TINY, "--out", folder, "--quiet")
    assert result.exit_code == 0, result.output
    return folder


# Pytest itself may have been started with Ctrl-C ignored, which processes inherit.
MAIN = """
import pathlib, signal
import rich.progress
signal.signal(signal.SIGINT, signal.default_int_handler)
update = rich.progress.Progress.update
def first_touch_a_file(self, *args, **fields):
    pathlib.Path("first-row").touch()
    update(self, *args, **fields)
rich.progress.Progress.update = first_touch_a_file
from pushforward.cli import main
main()
"""


@pytest.fixture
def start():
    """`start("fit", ...)`: begin a command in a process of its own, which Ctrl-C can reach.

    It makes a file `first-row` when its progress bar moves for the first time.
    """
    begun = []

    def begin(*words, cwd: Path):
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()
