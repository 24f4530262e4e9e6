"""What it costs to draw without JAX: a million draws by NumPy and by onnxruntime beside JAX, and the import.

    python benchmarks/runtime.py [--rounds 7] [--out results/runtime.jsonl]

The contestants take turns in one process, so that a busy machine slows all alike, and each round is held
against its own; the networks are untrained, since weights do not change the time. Imports are timed in fresh
processes, after one that is not counted.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from pushforward import runtime
from pushforward.frame import Frame
from pushforward.latents import Normal, NormalMixture
from pushforward.networks import mlp, modulated
from pushforward.sampler import Sampler
from reproduce.records import Header, Record, write
from reproduce.timing import summary, take_turns

DIM, WIDTH, DEPTH, COMPONENTS, NUM_DRAWS, SEED = 2, 64, 3, 64, 1_000_000, 0
BARS = {"numpy_times_jax": 3.0, "import_seconds": 0.2}
BLOCK = 65_536
"""Rows that onnxruntime is given at once."""

IMPORT = """
import time
started = time.perf_counter()
import {module}
print(time.perf_counter() - started)
"""


def paper_like() -> Sampler:
    network = mlp(jax.random.key(SEED), DIM, DIM, width=WIDTH, depth=DEPTH, skip=True)
    return Sampler(Normal(DIM), network, Frame.identity(DIM))


def default_like() -> Sampler:
    """Return a sampler of the default recipe's kind: a mixture of many normals, moved by a modulated map."""
    rng = np.random.default_rng(SEED)
    means = rng.normal(size=(COMPONENTS, DIM)).astype(np.float32)
    choleskys = np.broadcast_to(0.3 * np.eye(DIM, dtype=np.float32), (COMPONENTS, DIM, DIM))
    weights = rng.dirichlet(np.ones(COMPONENTS)).astype(np.float32)
    law = NormalMixture(*(jax.device_put(np.ascontiguousarray(a)) for a in (weights, means, choleskys)))
    network = modulated(jax.random.key(SEED), DIM, width=WIDTH, depth=DEPTH)
    return Sampler(law, network, Frame.identity(DIM))


SAMPLERS = {"mlp_64": paper_like, "modulated_64": default_like}


def by_onnx(path: Path) -> Callable[[], Any]:
    """Return a function that draws without JAX: latents by NumPy, the map by onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    law = runtime.law(json.loads(session.get_modelmeta().custom_metadata_map["latent"]))

    def draw() -> np.ndarray:
        rng, out = np.random.default_rng(SEED), np.empty((NUM_DRAWS, DIM), np.float32)
        for start in range(0, NUM_DRAWS, BLOCK):
            rows = min(BLOCK, NUM_DRAWS - start)
            (out[start : start + rows],) = session.run(None, {"latents": law.sample(rng, rows)})
        return out

    return draw


def measure(build: Callable[[], Sampler], rounds: int) -> dict[str, list[float]]:
    sampler, key = build(), jax.random.key(SEED)
    with tempfile.TemporaryDirectory() as folder:
        sampler.save(Path(folder) / "s.pf")
        sampler.export(Path(folder) / "s.onnx")
        light = runtime.load(Path(folder) / "s.pf")
        contestants = {
            "jax": lambda: sampler.sample(key, NUM_DRAWS),
            "numpy": lambda: light.sample(SEED, NUM_DRAWS),
            "onnxruntime": by_onnx(Path(folder) / "s.onnx"),
        }
        return take_turns(contestants, rounds)


def import_seconds(rounds: int) -> dict[str, list[float]]:
    """Return the seconds of importing the runtime, and NumPy alone, which it cannot do without, in turns."""

    def once(module: str) -> float:
        words = [sys.executable, "-c", IMPORT.format(module=module)]
        return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    modules = ("pushforward.runtime", "numpy")
    times = [{module: once(module) for module in modules} for _ in range(rounds + 1)]
    return {module: [each[module] for each in times[1:]] for module in modules}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/runtime.jsonl"))
    options = parser.parse_args()
    table = Table("sampler", "contestant", "a million draws", "times JAX", "bar")
    rows: list[Record] = []

    def record(
        method: str, target: str, metric: str, each: list[float], n: int | None, floor: float | None = None
    ) -> None:
        middle, spread = summary(each)
        rows.append(
            Record("runtime", "cpu", method, target, metric, middle, spread, n, len(each), SEED, floor)
        )

    for name, build in SAMPLERS.items():
        times = measure(build, options.rounds)
        for method, each in times.items():
            record(method, name, "seconds_per_1m_draws", each, NUM_DRAWS)
            ratios = [one / jaxs for one, jaxs in zip(each, times["jax"], strict=True)]
            if method != "jax":
                record(method, name, "times_jax", ratios, NUM_DRAWS)
            bar = f"{BARS['numpy_times_jax']:g}" if method == "numpy" else "-"
            table.add_row(
                name, method, f"{statistics.median(each):.3f} s", f"{statistics.median(ratios):.2f}", bar
            )
    imports = import_seconds(options.rounds)
    ours, floor = (statistics.median(imports[module]) for module in ("pushforward.runtime", "numpy"))
    record("numpy", "any_2d", "import_seconds", imports["pushforward.runtime"], None, floor)
    words = f"{ours:.3f} s (NumPy alone {floor:.3f} s)"
    table.add_row("any", "import", words, "-", f"{BARS['import_seconds']:g} s")
    command = f"python benchmarks/runtime.py --rounds {options.rounds}"
    write(options.out, Header.of_this_machine("runtime", "cpu", SEED, command), rows)
    Console().print(table, f"written to {options.out}")


if __name__ == "__main__":
    main()
