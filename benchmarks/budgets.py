"""Whether budgets hold: the seconds of a whole fit, each in a fresh process with an empty cache.

    python benchmarks/budgets.py [--budgets 5 15 60] [--busy 0 3] [--out results/budgets.jsonl]

`over` is the time beyond the budget, in units of what is allowed: a fifth of it and two seconds. Up to
one it is within. Beside the fit run as many processes as `--busy` says, each with work for a core. `steps=30`
has no budget; its row says how long a fit of so few steps takes in all.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from reproduce.records import Header, Record, write

STUDY, SEED = "budgets", 0
TARGETS = ("rosenbrock", "funnel_nd", "gmm40")

WORKER = """
import json, sys, time
import jax, pushforward as pf
target, fit = getattr(pf.targets, sys.argv[1])(), pf.fit
options = json.loads(sys.argv[2])
began = time.monotonic()
done = fit(jax.random.key(0), target, progress=False, throw=False, **options)
seconds = time.monotonic() - began
found = {"seconds": seconds, "outcome": done.outcome.name}
found["phases"] = [[each["phase"], each["seconds"]] for each in done.phases]
found["efficiency"] = done.sampler.about["metrics"].get("efficiency")
print(json.dumps(found))
"""
BUSY = "while True: sum(range(10**6))"


def measure(target: str, options: dict[str, float], busy: int) -> dict:
    """Return what one fit took, and how it ended."""
    beside = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
    try:
        with tempfile.TemporaryDirectory() as cache:
            env = {**os.environ, "JAX_PLATFORMS": "cpu", "PUSHFORWARD_CACHE": cache}
            words = [sys.executable, "-c", WORKER, target, json.dumps(options)]
            said = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
        return json.loads(said.splitlines()[-1])
    finally:
        for process in beside:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", type=float, nargs="*", default=[5.0, 15.0, 60.0])
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 3])
    parser.add_argument("--targets", nargs="+", default=TARGETS, choices=TARGETS)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("results/budgets.jsonl"))
    options = parser.parse_args()
    header = Header.of_this_machine(STUDY, "cpu", SEED, "python benchmarks/budgets.py")
    table = Table("target", "asked", "busy", "seconds", "over", "outcome", "stages", title="budgets")
    rows = []
    asked = [{"budget": budget} for budget in options.budgets] + [{"steps": options.steps}] * bool(
        options.steps
    )
    for target in options.targets:
        for wish in asked:
            for busy in options.busy:
                found = measure(target, wish, busy)
                name = "-".join(f"{n}-{v:g}" for n, v in wish.items()) + f"-busy-{busy}"
                figures = {"seconds": found["seconds"]}
                if "budget" in wish:
                    figures["over"] = (found["seconds"] - wish["budget"]) / (0.2 * wish["budget"] + 2.0)
                if found["efficiency"] is not None:
                    figures["efficiency"] = found["efficiency"]
                rows += [Record(STUDY, "cpu", name, target, m, v, seed=SEED) for m, v in figures.items()]
                stages = " ".join(f"{stage} {seconds:.1f}" for stage, seconds in found["phases"])
                told = f"{found['seconds']:.1f}", f"{figures.get('over', 0.0):.2f}", found["outcome"], stages
                table.add_row(target, str(wish), str(busy), *told)
                Console(width=150).print(name, target, *told)
    write(options.out, header, rows)
    Console(width=150).print(table, f"written to {options.out}")


if __name__ == "__main__":
    main()
