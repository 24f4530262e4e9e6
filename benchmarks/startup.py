"""How long a user waits: for the import, and for the first draw from a saved sampler, cold and warm.

    python benchmarks/startup.py [--rounds 7] [--out results/startup.jsonl]

Every figure comes from fresh processes. Cold means an empty compilation cache, warm the same folder again.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
from rich.console import Console
from rich.table import Table

from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.sampler import Sampler
from reproduce.records import Header, Record, write

NUM_DRAWS, SEED = 1_000, 0
BARS = {"import_seconds": 1.5, "first_draw_seconds_cold": 3.0, "first_draw_seconds_warm": 0.5}
IMPORT = """
import time
started = time.perf_counter()
import pushforward
pushforward.fit, pushforward.load  # names are imported when they are first used
print(time.perf_counter() - started)
"""
FIRST_DRAW = f"""
import sys, time
import jax, numpy, pushforward
pushforward.load
started = time.perf_counter()
numpy.asarray(pushforward.load(sys.argv[1]).sample(jax.random.key(1), {NUM_DRAWS}))
print(time.perf_counter() - started)
"""
COMMAND_LINE = """
import subprocess, sys, time
started = time.perf_counter()
subprocess.run([sys.executable, "-m", "pushforward.cli", "--help"], check=True, capture_output=True)
print(time.perf_counter() - started)
"""


def seconds(code: str, *words: str, cache: Path) -> float:
    """Run `code` in a fresh process and return the number it prints."""
    environment = {**os.environ, "PUSHFORWARD_CACHE": str(cache)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def measure(rounds: int) -> dict[str, list[float]]:
    network = mlp(jax.random.key(SEED), 2, 2, width=64, depth=3, skip=True)
    times: dict[str, list[float]] = {name: [] for name in (*BARS, "help_seconds")}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sampler.pf"
        Sampler(Normal(2), network, Frame.identity(2)).save(file)
        for round_ in range(rounds):
            cache = Path(folder) / f"cache-{round_}"
            times["import_seconds"].append(seconds(IMPORT, cache=cache))
            times["first_draw_seconds_cold"].append(seconds(FIRST_DRAW, str(file), cache=cache))
            times["first_draw_seconds_warm"].append(seconds(FIRST_DRAW, str(file), cache=cache))
            times["help_seconds"].append(seconds(COMMAND_LINE, cache=cache))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/startup.jsonl"))
    options = parser.parse_args()
    times = measure(options.rounds)
    command = f"python benchmarks/startup.py --rounds {options.rounds}"
    header = Header.of_this_machine("startup", "cpu", SEED, command)
    rows = [
        Record(
            "startup", "cpu", "pushforward", "any_2d", name, statistics.median(each),
            statistics.stdev(each), NUM_DRAWS if "draw" in name else None, len(each), SEED,
        )
        for name, each in times.items()
    ]  # fmt: skip
    write(options.out, header, rows)
    table = Table("figure", "median", "fastest", "bar", title=f"{options.rounds} fresh processes each")
    for name, each in times.items():
        bar = f"{BARS[name]:g}" if name in BARS else "-"
        table.add_row(name, f"{statistics.median(each):.2f}", f"{min(each):.2f}", bar)
    Console().print(table, f"written to {options.out}")


if __name__ == "__main__":
    main()
