"""One device or eight, one process or two: the same losses. One process lost: the others say so and end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
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


@pytest.mark.parametrize(("count", "lost"), [(2, 0), (4, 1), (4, 0)])
def test_processes_have_the_losses_of_one_until_one_is_lost_and_one_goes_on(alone, tmp_path, count, lost):
    """Whichever it is, the first of all among them."""
    address, folder, dies_at = f"127.0.0.1:{free_port()}", tmp_path / "checkpoint", 40
    outs = [tmp_path / f"{i}.json" for i in range(count)]
    deaths = [[dies_at] if i == lost else [] for i in range(count)]
    all_ = [begin(outs[i], address, count, i, *deaths[i], checkpoint=folder) for i in range(count)]
    try:
        all_[lost].communicate(timeout=400)
        assert all_[lost].returncode == -signal.SIGKILL
        # Within a minute, says the promise.
        ends = [(i, *process.communicate(timeout=60)) for i, process in enumerate(all_) if i != lost]
    finally:
        for process in all_:
            process.kill()
            process.communicate()
    for i, said, _ in ends:
        assert all_[i].returncode == 1, said
        assert "another process of the run was lost" in said
        found = json.loads(outs[i].read_text())
        assert (found["processes"], found["outcome"]) == (count, "LOST_PROCESS")
        assert 20 < len(found["objective"]) < len(alone["objective"])
        np.testing.assert_allclose(found["objective"], alone["objective"][: len(found["objective"])], **CLOSE)
    # What was written down serves one process as well, and leads where one alone would have come.
    one = finish(begin(outs[0], checkpoint=folder), outs[0])
    assert (one["processes"], one["outcome"]) == (1, "FINISHED")
    np.testing.assert_allclose(one["objective"], alone["objective"], **CLOSE)


def listening(port):
    """The local addresses at which somebody listens at a port, as the kernel writes them."""
    rows = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    return {
        row[1].rpartition(":")[0]
        for row in rows
        if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port
    }


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells who listens where")
def test_the_coordinator_listens_where_it_was_told_to_and_ends_with_its_run():
    port = free_port()
    words = "import sys, pushforward as pf; pf.distributed.initialize(sys.argv[1], 1, 0); print('in', flush=True); input()"
    running = subprocess.Popen(
        [sys.executable, "-c", words, f"127.0.0.1:{port}"],
        env={**os.environ, "JAX_PLATFORMS": "cpu"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == b"in\n"
    # 127.0.0.1, as one kind of address or the other, and not 0.0.0.0 or [::].
    assert listening(port) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert listening(port)
    running.communicate(b"\n", timeout=60)
    deadline = time.monotonic() + 30
    while listening(port) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not listening(port)


REDUCED = """
import dataclasses, re, sys
import jax, jax.numpy as jnp, pushforward as pf
from pushforward.devices import batch_mesh, on_all
from pushforward.recipe.parts import build_parts
from pushforward.training import alternating
from pushforward.training.loop import nothing, run_piece

sizes = dict(width=4, depth=1, score_width=4, score_depth=1, batch_size=64, score_batch_size=64)
settings = pf.preset("kl", frame="identity", num_steps=10, extra_latents=0, matching=sys.argv[1], **sizes)
key, mesh = jax.random.key(0), batch_mesh()
parts = build_parts(key, pf.targets.rosenbrock(), settings)
algorithm = alternating(dataclasses.replace(on_all(parts, mesh), mesh=mesh))
state = algorithm.init(key)
arguments = on_all((key, state, nothing(algorithm, key, state), jnp.asarray(0), jnp.asarray(1)), mesh)
program = run_piece.lower(algorithm, *arguments).compile().compiled.as_text()
kinds = re.findall(r"= (.*) all-reduce(?:-start)?[(]", program)
print(sum(kind.count("[") for kind in kinds))
"""


@pytest.mark.parametrize(("matching", "least", "most"), [("exact", 2, 2), ("sliced", 3, 99)])
def test_a_gradient_is_added_up_at_once(matching, least, most):
    """One array in the loop of score steps, and one for the sampler: where rows count alone."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    words = [sys.executable, "-c", REDUCED, matching]
    said = subprocess.run(words, env={**os.environ, **flags}, capture_output=True, text=True, check=True)
    assert least <= int(said.stdout) <= most
