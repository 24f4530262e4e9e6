"""What draws cost, beside what they must cost: the latents alone, and the arithmetic at full speed.

    python benchmarks/draws.py [--widths 32 64 ...] [--rounds 5] [--out results/draws.jsonl]

The networks are untrained: weights do not change the time. All contestants take turns, so that a busy
machine slows them alike; medians are shown.
"""

import argparse
import math
from pathlib import Path

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from pushforward.cli.timing import Times, interleaved
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.records import Header, Record, write
from pushforward.sampler import Sampler

DIM, DEPTH, SEED = 2, 3, 0
FEW, MANY = 1_000, 1_000_000
SQUARE = 2048
BAR_WIDTH, BAR = 64, 3.0
"""A million draws from a 64-wide sampler may cost three times what they must."""


def build(width: int) -> Sampler:
    network = mlp(jax.random.key(SEED), DIM, DIM, width=width, depth=DEPTH, skip=True)
    return Sampler(Normal(DIM), network, Frame.identity(DIM))


def flops(sampler: Sampler) -> int:
    """Multiplications and additions of the matrix products of one draw."""
    return 2 * sum(math.prod(weight.shape) for weight in sampler.network.weights)


def parameters(sampler: Sampler) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(sampler.network))


def measure(samplers: dict[int, Sampler], n: int, rounds: int) -> dict[str, Times]:
    key = jax.random.key(SEED)
    matrix = jax.random.normal(key, (SQUARE, SQUARE))
    multiply = jax.jit(jnp.matmul)
    latents = jax.jit(lambda key: jax.random.normal(key, (n, DIM)))
    contestants = {
        "matrix_product": lambda: multiply(matrix, matrix),
        "latents": lambda: latents(key),
        **{f"width_{w}": lambda s=s: s.sample(key, n) for w, s in samplers.items()},
    }
    return interleaved(contestants, rounds)


def records(
    samplers: dict[int, Sampler], times: dict[int, dict[str, Times]], rounds: dict[int, int]
) -> list[Record]:
    found: list[Record] = []

    def add(method: str, metric: str, value: float, spread: float | None = None, n: int | None = None):
        repeats = rounds[n] if n else None
        target = f"any_{DIM}d"
        found.append(Record("draws", "cpu", method, target, metric, value, spread, n, repeats, SEED))

    rate = flops_per_second(times[MANY])
    add("matrix_product", "flops_per_second", rate)
    for n, label in ((FEW, "1k"), (MANY, "1m")):
        seconds = times[n]["latents"]
        add("latents", f"seconds_per_{label}_draws", *seconds, n)
        for width, sampler in samplers.items():
            add(f"width_{width}", f"seconds_per_{label}_draws", *times[n][f"width_{width}"], n)
            add(f"width_{width}", f"arithmetic_seconds_per_{label}_draws", n * flops(sampler) / rate)
    for width, sampler in samplers.items():
        add(f"width_{width}", "flops", flops(sampler))
        add(f"width_{width}", "parameters", parameters(sampler))
    return found


def flops_per_second(times: dict[str, Times]) -> float:
    return 2 * SQUARE**3 / times["matrix_product"].median


def show(samplers: dict[int, Sampler], times: dict[int, dict[str, Times]]) -> None:
    console, rate = Console(), flops_per_second(times[MANY])
    console.print(f"\nmatrix products: {rate / 1e9:.0f} GFLOP/s")
    table = Table(title=f"seconds for {DIM}-D draws, {DEPTH} hidden layers")
    for title in ("width", "1,000", "1,000,000", "latents", "arithmetic", "times the limit"):
        table.add_column(title, justify="right")
    latents = times[MANY]["latents"].median
    for width, sampler in samplers.items():
        few, many = (times[n][f"width_{width}"].median for n in (FEW, MANY))
        arithmetic = MANY * flops(sampler) / rate
        ratio = many / (latents + arithmetic)
        verdict = f" (bar {BAR:g})" if width == BAR_WIDTH else ""
        cells = (f"{few:.5f}", f"{many:.3f}", f"{latents:.3f}", f"{arithmetic:.3f}")
        table.add_row(str(width), *cells, f"{ratio:.2f}{verdict}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128, 200, 400])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/draws.jsonl"))
    options = parser.parse_args()
    samplers = {width: build(width) for width in options.widths}
    rounds = {FEW: 10 * options.rounds, MANY: options.rounds}
    times = {n: measure(samplers, n, rounds[n]) for n in (FEW, MANY)}
    command = f"python benchmarks/draws.py --rounds {options.rounds}"
    header = Header.of_this_machine("draws", "cpu", SEED, command)
    write(options.out, header, records(samplers, times, rounds))
    show(samplers, times)
    Console().print(f"written to {options.out}")


if __name__ == "__main__":
    main()
