import signal
import time

import pytest
from cli_sizes import TINY

from pushforward.runs import load_run


def _wait_for(condition, process, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


# SIGTERM is what schedulers send before they kill.
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_during_training_keeps_the_last_good_sampler(start, tmp_path, number):
    words = [*TINY, "--steps", 4000, "--set", "batch_size=4096"]
    process = start("fit", "rosenbrock", *words, "--out", "run", cwd=tmp_path)
    _wait_for((tmp_path / "first-row").exists, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "the last good sampler is in run" in err
    assert "Traceback" not in err
    run = load_run(tmp_path / "run")
    assert run.about["outcome"] == "INTERRUPTED"
    assert 0 < len(run.history) < 40
    assert run.sampler().dim == 2
    assert {path.name for path in tmp_path.iterdir()} == {"first-row", "run"}


def test_ctrl_c_while_drawing_leaves_no_file(start, run_folder, tmp_path):
    process = start("sample", run_folder, "-n", "2e9", "--out", "draws.npy", cwd=tmp_path)

    def drawing():
        return any(path.stat().st_size > 10**6 for path in tmp_path.iterdir())

    _wait_for(drawing, process)
    assert not (tmp_path / "draws.npy").exists()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "nothing was written" in err
    assert list(tmp_path.iterdir()) == []
