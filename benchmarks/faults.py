"""What it survives: kills at random moments, a full disk, and SIGTERM. Bad files are in `mutated_files.py`.

    python benchmarks/faults.py [--kills 50] [--out results/faults.jsonl]

A small fit and a small study are killed again and again until they are done, then compared, bit by bit, with
runs that nobody disturbed.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

# Nothing of these starts a backend of JAX, so that a fork of this process is as good as a new one.
import equinox
import jax
import optax
import scipy.special
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "survive"))

STUDY, SEED = "faults", 0
IMPORTED = (equinox, optax, scipy.special)


def small_fit(folder: Path) -> None:
    """Fit with a checkpoint after every few steps, and write the weights' checksum down."""
    import pushforward as pf

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line has it

    settings = pf.preset(
        "kl",
        frame="identity",
        width=16,
        depth=2,
        score_width=16,
        batch_size=256,
        score_batch_size=256,
        num_steps=2000,
    )
    done = pf.fit(
        jax.random.key(SEED), pf.targets.rosenbrock(), settings=settings, progress=False,
        checkpoint=folder / "checkpoint", checkpoint_every=0.0,
    )  # fmt: skip
    if done.outcome.name != "FINISHED":
        return
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(done.sampler):
        digest.update(jax.device_get(leaf).tobytes())
    rows = [{n: v for n, v in row.items() if n != "seconds"} for row in done.history]
    digest.update(json.dumps(rows).encode())
    (folder / "sha256").write_text(digest.hexdigest())


def small_study(folder: Path) -> None:
    """Run a study's smoke preset on one target, and write a checksum of all figures but times down."""
    from reproduce import records
    from reproduce.studies import two_d

    settings = two_d.PRESETS["smoke"].replace(targets=("gaussian",), methods=("kl-plain", "exact", "ld"))
    path = two_d.run(settings, folder / "study")
    _, found = records.read(path)
    rows = sorted(str(r) for r in found if "second" not in r.metric and r.metric != "done")
    (folder / "sha256").write_text(hashlib.sha256("\n".join(rows).encode()).hexdigest())


def in_child(work: Callable[[Path], None], folder: Path) -> int:
    """Start `work` in a process of its own and return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        warnings.simplefilter("ignore")
        work(folder)
        code = 0
    finally:
        os._exit(code)


def ended(pid: int, seconds: float) -> bool:
    """Wait so long for a process, and say whether it has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.02)
    return False


def kills(
    work: Callable[[Path], None], wanted: int, signals: tuple[int, ...], rng: random.Random
) -> dict[str, int]:
    """Kill `work` at `wanted` random moments, letting it go on each time, and count what was lost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for run in ("first", "undisturbed"):
            (folder / run).mkdir()
            started = time.monotonic()
            while not ended(in_child(work, folder / run), 3600.0):
                pass
            # The second run finds everything compiled, as those to be killed will.
            whole = time.monotonic() - started
        expected = (folder / "undisturbed" / "sha256").read_text()
        found = {"kills": 0, "runs": 0, "lost": 0}
        while found["kills"] < wanted:
            place = folder / f"run-{found['runs']}"
            place.mkdir()
            while not (place / "sha256").exists():
                pid = in_child(work, place)
                if not ended(pid, rng.uniform(0.0, 1.2 * whole)):
                    os.kill(pid, rng.choice(signals))
                    found["kills"] += 1
                    while not ended(pid, 3600.0):
                        pass
                elif not (place / "sha256").exists():
                    print((place / "log").read_text()[-2000:])
                    found["lost"] += 1
                    return found
            found["runs"] += 1
            found["lost"] += (place / "sha256").read_text() != expected
            shutil.rmtree(place)
        return found


def full_disk() -> dict[str, int]:
    """Let every write fail now and then, and see that whatever was there stays whole."""
    from honest import honest

    from pushforward.atomic import write_atomically

    found, rng, fsync = {"writes": 0, "lost": 0}, random.Random(SEED), os.fsync

    def failing(fd: int) -> None:
        if rng.random() < 0.5:
            raise OSError(28, "No space left on device")
        fsync(fd)

    with tempfile.TemporaryDirectory() as name:
        path, last = Path(name) / "file", b""
        contents = [data for kind in honest(Path(name)).values() for data in kind]
        os.fsync = failing
        try:
            for _ in range(1000):
                data = rng.choice(contents)
                try:
                    write_atomically(path, data)
                    last = data
                except OSError:
                    pass
                found["writes"] += 1
                found["lost"] += (path.read_bytes() if path.exists() else b"") != last
                found["lost"] += sorted(os.listdir(name)) != (["file"] if path.exists() else [])
        finally:
            os.fsync = fsync
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("results/faults.jsonl"))
    options = parser.parse_args()
    # First what needs forks, while no backend runs here.
    found: dict[str, dict[str, float]] = {}
    if options.kills:
        rng = random.Random(SEED)
        found["sigkill_fit"] = kills(small_fit, options.kills, (signal.SIGKILL,), rng)
        found["sigkill_study"] = kills(small_study, options.kills, (signal.SIGKILL,), rng)
        found["sigterm_fit"] = kills(small_fit, max(1, options.kills // 5), (signal.SIGTERM,), rng)
    found["full_disk"] = full_disk()

    from reproduce.records import Header, Record, write

    command = f"python benchmarks/faults.py --kills {options.kills}"
    header = Header.of_this_machine(STUDY, "cpu", SEED, command)
    table = Table("fault", "figure", "count", title="what it survives")
    rows = []
    for fault, figures in found.items():
        for metric, value in figures.items():
            rows.append(Record(STUDY, "cpu", "pushforward", fault, metric, value, seed=SEED))
            table.add_row(fault, metric, f"{value:g}")
    write(options.out, header, rows)
    Console().print(table, f"written to {options.out}")


if __name__ == "__main__":
    main()
