"""Weak scaling: each of N processes gets the same share of a batch that grows with N.

    python benchmarks/scaling.py [--most 2] [--steps 200] [--batches 512 4096] [--out FILE]

Efficiency is the time of a step of one process over that of N. Processes of one machine share its cores, so
what is measured here is chiefly what the collectives cost, for several batches. Each process works with one
thread, but is not held to one core: gloo waits by spinning, and a process that spins on the core its own
arithmetic needs loses a tick of the scheduler to every collective. Beside it stands what the model of
docs/scaling.md expects of accelerators, up to 256 of them; its table is written there.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from reproduce.records import Header, Record, write

STUDY, SEED = "weak_scaling", 0
DOCS = Path(__file__).parents[1] / "docs" / "scaling.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

WORKER = """
import json, os, sys
count, index, batch, steps = map(int, sys.argv[2:6])
import jax, pushforward as pf
if count > 1:
    pf.distributed.initialize(sys.argv[1], count, index)
sizes = dict(batch_size=batch * count, score_batch_size=batch * count)
settings = pf.preset("kl", frame="identity", num_steps=steps, **sizes)
done = pf.fit(jax.random.key(0), pf.targets.rosenbrock(), settings=settings, progress=False)
parameters = sum(a.size for a in jax.tree.leaves(done.sampler.network))
rows = done.history
half = len(rows) // 2
seconds = (rows[-1]["seconds"] - rows[half]["seconds"]) / (rows[-1]["step"] - rows[half]["step"])
if index == 0:
    json.dump({"seconds": seconds, "parameters": parameters}, open(sys.argv[6], "w"))
"""


def measure(count: int, batch: int, steps: int) -> dict[str, float]:
    """Return the seconds of a step, and the sampler's parameters."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "out.json"
        words = [[address, count, index, batch, steps, out] for index in range(count)]
        # `NPROC` is where XLA looks for the size of its pool of threads.
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "NPROC": "1"}
        running = [
            subprocess.Popen([sys.executable, "-c", WORKER, *map(str, each)], env=env) for each in words
        ]
        if any(process.wait(timeout=3600) for process in running):
            raise RuntimeError(f"one of {count} processes failed")
        return json.loads(out.read_text())


class Case(NamedTuple):
    """A step on one device: parameters of sampler and score net, score steps, coordinates, batch."""

    sampler: float
    score_net: float
    score_steps: int
    passes: int
    """Of the score net, for its divergence: the coordinates where it is exact, one where it is sliced."""
    batch: int

    @property
    def flops(self) -> float:
        """Arithmetic of a step: 2 a parameter and row forward, 4 backward."""
        score = self.score_steps * (2 * self.sampler + 6 * (1 + self.passes) * self.score_net)
        return self.batch * (6 * self.sampler + score)

    @property
    def bytes_reduced(self) -> float:
        """Gradients that all devices must add up in a step, as float32."""
        return 4 * (self.sampler + self.score_steps * self.score_net)

    def efficiency(self, devices: int) -> float:
        """Share of the time spent on arithmetic, with no overlap: ring all-reduce, its steps in sequence."""
        calls, hops = 1 + self.score_steps, 2 * (devices - 1)
        moved = hops / devices * self.bytes_reduced / LINK + calls * hops * LATENCY
        work = self.flops / (PEAK * USED)
        return work / (work + moved)


PEAK, USED, LINK, LATENCY = 1e14, 0.4, 25e9, 2e-6
"""FLOP/s of an accelerator and the share that is used; bytes a second and seconds a hop between two."""

CASES = {"plane": Case(1.3e4, 1.9e4, 4, 2, 512), "images": Case(1e7, 1e7, 4, 1, 256)}
MODELLED = (1, 8, 64, 256)


def model() -> list[Record]:
    """Return what the model expects, as records."""
    rows = []
    for name, case in CASES.items():
        rows.append(Record(STUDY, "model", "model-1", name, "bytes_reduced", case.bytes_reduced))
        rows.append(Record(STUDY, "model", "model-1", name, "flops", case.flops))
        for count in MODELLED:
            value = case.efficiency(count)
            rows.append(Record(STUDY, "model", f"model-{count}", name, "efficiency", value))
    return rows


def page(rows: list[Record]) -> str:
    """Return the tables of docs/scaling.md."""
    measured = ["| rows a process | processes | seconds a step | added | efficiency |", "|---" * 5 + "|"]
    by = {(r.method, r.target, r.metric): r.value for r in rows}
    for target, method in dict.fromkeys((r.target, r.method) for r in rows if r.preset == "cpu"):
        seconds, share = (by[method, target, m] for m in ("seconds_per_step", "efficiency"))
        cells = target.removeprefix("rosenbrock-"), method.removeprefix("processes-")
        measured.append(
            f"| {' | '.join(cells)} | {seconds:.3g} | {seconds * (1 - share):.3g} | {share:.2f} |"
        )
    heads = " | ".join(f"{count} devices" for count in MODELLED)
    expected = [f"| case | bytes added up a step | {heads} |", "|---" * (2 + len(MODELLED)) + "|"]
    for name in CASES:
        shares = " | ".join(f"{by[f'model-{count}', name, 'efficiency']:.3f}" for count in MODELLED)
        expected.append(f"| {name} | {by['model-1', name, 'bytes_reduced']:.3g} | {shares} |")
    return "\n".join(["**Measured**", "", *measured, "", "**Expected by the model**", "", *expected])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=min(4, len(os.sched_getaffinity(0))))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batches", type=int, nargs="+", default=[512, 4096], help="rows of each process")
    parser.add_argument("--out", type=Path, default=Path("results/weak_scaling.jsonl"))
    options = parser.parse_args()
    counts = [2**i for i in range(options.most.bit_length()) if 2**i <= options.most]
    batches = " ".join(map(str, options.batches))
    command = (
        f"python benchmarks/scaling.py --most {options.most} --steps {options.steps} --batches {batches}"
    )
    header = Header.of_this_machine(STUDY, "cpu", SEED, command)
    table = Table("rows a process", "processes", "seconds per step", "efficiency", title="weak scaling")
    rows = []
    for batch in options.batches:
        found = {count: measure(count, batch, options.steps) for count in counts}
        for count, figures in found.items():
            efficiency = found[counts[0]]["seconds"] / figures["seconds"]
            kinds = {
                "seconds_per_step": figures["seconds"],
                "efficiency": efficiency,
                "parameters": figures["parameters"],
            }
            name, of = f"processes-{count}", f"rosenbrock-{batch}"
            rows += [
                Record(STUDY, "cpu", name, of, m, v, n=batch * count, seed=SEED) for m, v in kinds.items()
            ]
            table.add_row(str(batch), str(count), f"{figures['seconds']:.4g}", f"{efficiency:.2f}")
    rows += model()
    write(options.out, header, rows)
    if DOCS.exists():
        before, _, rest = DOCS.read_text().partition(BEGIN)
        DOCS.write_text(f"{before}{BEGIN}\n\n{page(rows)}\n\n{END}{rest.partition(END)[2]}")
    Console().print(table, f"written to {options.out}")


if __name__ == "__main__":
    main()
