"""One device or eight, one process or two: the same losses. One process lost: the others say so and end."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("losses.py")
STEPS = 100
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def begin(out, *words, devices=1, checkpoint=""):
    # Quick to compile: what is tested is who does what, not how fast.
    flags = f"--xla_force_host_platform_device_count={devices}"
    quick = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(out), str(STEPS), str(checkpoint), *map(str, words)],
        env={**os.environ, **quick},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, out, seconds=400):
    try:
        said, _ = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, said
    return json.loads(out.read_text())


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The losses of one device."""
    out = tmp_path_factory.mktemp("alone") / "out.json"
    return finish(begin(out), out)


def test_eight_devices_have_the_losses_of_one(alone, tmp_path):
    eight = finish(begin(tmp_path / "out.json", devices=8), tmp_path / "out.json")
    assert (alone["devices"], eight["devices"]) == (1, 8)
    assert len(eight["objective"]) == STEPS // 2
    np.testing.assert_allclose(eight["objective"], alone["objective"], **CLOSE)
    np.testing.assert_allclose(eight["mean"], alone["mean"], rtol=1e-4, atol=1e-4)


def test_four_processes_have_the_losses_of_one_until_one_is_lost_and_one_goes_on(alone, tmp_path):
    address, folder, count, dies_at = f"127.0.0.1:{free_port()}", tmp_path / "checkpoint", 4, 40
    outs = [tmp_path / f"{i}.json" for i in range(count)]
    chief = begin(outs[0], address, count, 0, checkpoint=folder)
    others = [begin(outs[i], address, count, i, *([dies_at] if i == 1 else [])) for i in range(1, count)]
    try:
        others[0].communicate(timeout=400)
        assert others[0].returncode == -signal.SIGKILL
        # Within a minute, says the promise.
        said, _ = chief.communicate(timeout=60)
    finally:
        for process in (chief, *others):
            process.kill()
            process.communicate()
    assert chief.returncode == 1, said
    assert "another process of the run was lost" in said
    all_ = json.loads(outs[0].read_text())
    assert (all_["processes"], all_["outcome"]) == (count, "LOST_PROCESS")
    assert 20 < len(all_["objective"]) < len(alone["objective"])
    np.testing.assert_allclose(all_["objective"], alone["objective"][: len(all_["objective"])], **CLOSE)
    # What was written down serves one process as well, and leads where one alone would have come.
    one = finish(begin(outs[0], checkpoint=folder), outs[0])
    assert (one["processes"], one["outcome"]) == (1, "FINISHED")
    np.testing.assert_allclose(one["objective"], alone["objective"], **CLOSE)
