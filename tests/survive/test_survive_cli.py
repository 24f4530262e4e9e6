"""A run's folder is enough to run it again; and the command line passes on what a fit survives."""

import shlex
import subprocess
import sys

import jax
import numpy as np
import pytest

from pushforward.runs import load_run

TINY = ["--method", "kl", "--steps", "4", "--set", "frame=identity", "--set", "width=4", "--set", "depth=1"]
TINY += [
    "--set",
    "score_width=4",
    "--set",
    "score_depth=1",
    "--set",
    "batch_size=16",
    "--set",
    "score_batch_size=16",
]

MODEL = """
import jax.numpy as jnp

def log_density(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2)
"""


def weights(folder):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(load_run(folder).sampler())]


def test_a_run_is_made_again_from_its_folder_alone(invoke, tmp_path):
    model = tmp_path / "my model.py"
    model.write_text(MODEL)
    words = [f"{model}:log_density", "--dim", 2, *TINY, "--seed", 3, "--checkpoint", tmp_path / "c", "-q"]
    result = invoke("fit", *words, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    # Its checkpoint is of no use to another.
    other = [4 if word == 3 else word for word in words]
    result = invoke("fit", *other, "--out", tmp_path / "other")
    assert result.exit_code == 2
    assert "holds another fit" in result.stderr
    assert "`key`" in result.stderr
    assert not (tmp_path / "other").exists()
    model.unlink()
    # Moved, and without the file it came from.
    (tmp_path / "run").rename(tmp_path / "moved")
    command = load_run(tmp_path / "moved").command
    assert "--seed 3" in command
    # `show` folds long lines.
    shown = invoke("show", tmp_path / "moved", "--json").output
    assert "model.py:log_density" in shown
    program, verb, *rest = shlex.split(command)
    assert (program, verb) == ("pushforward", "fit")
    result = invoke(verb, *rest, "--out", tmp_path / "again", "-q")
    assert result.exit_code == 0, result.output
    assert weights(tmp_path / "again") == weights(tmp_path / "moved")


def test_too_few_addresses_are_an_error_and_no_crash(sampler_file, tmp_path):
    words = [
        sys.executable,
        "-m",
        "pushforward.cli",
        "sample",
        sampler_file,
        "-n",
        10,
        "--out",
        tmp_path / "a.npy",
    ]
    line = f"ulimit -v 1200000; exec {shlex.join(map(str, words))}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "ulimit -v 2097152" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--num-processes", "2"], "add --distributed"),
        (["--distributed", "--num-processes", "2"], "given together"),
        (
            ["--distributed", "--coordinator", "here", "--num-processes", "2", "--process-id", "0"],
            "host:port",
        ),
        (
            ["--distributed", "--coordinator", "h:1", "--num-processes", "2", "--process-id", "2"],
            "from 0 to 1",
        ),
        (["--budget", "0"], "budget"),
        (["--budget", "5 minutes"], "'5m'"),
    ],
)
def test_bad_options_of_survival_are_refused(invoke, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    result = invoke("fit", "gaussian", *TINY, *words)
    assert result.exit_code == 2
    assert message in result.stderr.replace("│\n│ ", "")
    assert list(tmp_path.iterdir()) == []
