"""An hour of fit, sample, save, load, check, over and over: memory must stay flat and no handle be left open.

    python benchmarks/soak.py [--seconds 3600] [--rounds 100000] [--out results/soak.jsonl]

Ends after so many seconds or rounds, whichever comes first. The first rounds, in which everything is
compiled, are not counted.
"""

import argparse
import gc
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import pushforward as pf
from reproduce.records import Header, Record, write

STUDY, SEED, WARM_UP, SHARE = "soak", 0, 10, 0.2
MOST_GROWTH = 1.05
SIZES = {"width": 8, "depth": 1, "score_width": 8, "score_depth": 1, "batch_size": 64, "score_batch_size": 64}


def one_round(number: int, folder: Path) -> None:
    settings = pf.preset("kl", frame="identity", num_steps=40, **SIZES)
    done = pf.fit(
        jax.random.key(number), pf.targets.rosenbrock(), settings=settings, progress=False,
        checkpoint=folder / f"checkpoint-{number % 2}-{number}", checkpoint_every=0.0,
    )  # fmt: skip
    done.sampler.save(folder / "sampler.pf")
    loaded, key = pf.load(folder / "sampler.pf"), jax.random.key(number + 1)
    draws = np.asarray(loaded.sample(key, 20_000))
    if not np.array_equal(draws, done.sampler.sample(key, 20_000)):
        raise AssertionError(f"round {number}: a loaded sampler draws something else.")
    for path in (folder / f"checkpoint-{number % 2}-{number}").iterdir():
        path.unlink()


def resident() -> float:
    """Return the megabytes of this process that are in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("results/soak.jsonl"))
    options = parser.parse_args()
    memory, handles, threads = [], [], []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for number in range(WARM_UP + options.rounds):
            one_round(number, Path(name))
            gc.collect()
            if number >= WARM_UP:
                memory.append(resident())
                handles.append(len(os.listdir("/proc/self/fd")))
                threads.append(threading.active_count())
            if number > WARM_UP and time.monotonic() - started > options.seconds:
                break
    edge = max(1, round(SHARE * len(memory)))
    growth = statistics.median(memory[-edge:]) / statistics.median(memory[:edge])
    figures = {
        "rounds": len(memory), "seconds": time.monotonic() - started, "memory_growth": growth,
        "memory_mb": memory[-1], "handles_leaked": handles[-1] - handles[0],
        "threads_leaked": threads[-1] - threads[0],
    }  # fmt: skip
    command = f"python benchmarks/soak.py --seconds {options.seconds:g} --rounds {options.rounds}"
    header = Header.of_this_machine(STUDY, "cpu", SEED, command)
    rows = [Record(STUDY, "cpu", "pushforward", "rosenbrock", m, v, seed=SEED) for m, v in figures.items()]
    write(options.out, header, rows)
    table = Table("figure", "value", title="soak")
    for metric, value in figures.items():
        table.add_row(metric, f"{value:.4g}")
    Console().print(table, f"written to {options.out}")
    if growth > MOST_GROWTH or figures["handles_leaked"] > 0:
        raise SystemExit("memory grew or a handle was left open")


if __name__ == "__main__":
    main()
