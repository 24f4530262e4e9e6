"""What draws cost, beside what they must cost: the latents alone, and the arithmetic at full speed.

    python benchmarks/draws.py [--widths 32 64 ...] [--rounds 7] [--out results/draws.jsonl]

The networks are untrained: weights do not change the time. Each width takes turns with the latents and with
a matrix product, and is held against the limit of its own round, so that a busy machine spoils both alike;
medians over the rounds are shown. `mixture` is what the default method makes of MOG2, two normals and no
network.
"""

import argparse
import math
import statistics
from pathlib import Path

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from pushforward.frame import Frame
from pushforward.latents import Normal, NormalMixture
from pushforward.networks import MLP, Identity, mlp
from pushforward.sampler import Sampler
from pushforward.targets import mog2
from reproduce.records import Header, Record, write
from reproduce.timing import summary, take_turns

DIM, DEPTH, SEED = 2, 3, 0
SIZES = {"1k": 1_000, "1m": 1_000_000}
SQUARE = 2048
BAR_WIDTH, BAR = 64, 3.0
"""A million draws from a 64-wide sampler may cost three times what they must."""
BAR_MILLISECONDS = 0.15
"""For a thousand draws of the mixture in one call."""

Rounds = dict[str, list[float]]


def mixture() -> Sampler:
    target = mog2()
    return Sampler(
        NormalMixture(target.weights, target.means, target.scales), Identity(DIM), Frame.identity(DIM)
    )


def build(width: int) -> Sampler:
    network = mlp(jax.random.key(SEED), DIM, DIM, width=width, depth=DEPTH, skip=True)
    return Sampler(Normal(DIM), network, Frame.identity(DIM))


def flops(sampler: Sampler) -> int:
    """Multiplications and additions of the matrix products of one draw."""
    network = sampler.network
    return 2 * sum(math.prod(w.shape) for w in network.weights) if isinstance(network, MLP) else 0


def measure(sampler: Sampler, n: int, rounds: int) -> Rounds:
    """Return seconds by round: of the draws, of their latents, and of their arithmetic at full speed."""
    key = jax.random.key(SEED)
    matrix = jax.random.normal(key, (SQUARE, SQUARE))
    multiply = jax.jit(jnp.matmul)
    latents = jax.jit(lambda key: jax.random.normal(key, (n, DIM)))
    times = take_turns(
        {
            "product": lambda: multiply(matrix, matrix),
            "latents": lambda: latents(key),
            "draws": lambda: sampler.sample(key, n),
        },
        rounds,
    )
    share = n * flops(sampler) / (2 * SQUARE**3)
    times["arithmetic"] = [share * seconds for seconds in times.pop("product")]
    return times


def ratio(times: Rounds) -> float:
    """How many times their limit the draws took, each round against its own."""
    rounds = zip(times["draws"], times["latents"], times["arithmetic"], strict=True)
    return statistics.median(draws / (latents + arithmetic) for draws, latents, arithmetic in rounds)


def records(name: str, sampler: Sampler, label: str, times: Rounds) -> list[Record]:
    n, repeats = SIZES[label], len(times["draws"])
    rows = {
        "seconds": summary(times["draws"]),
        "latents_seconds": summary(times["latents"]),
        "arithmetic_seconds": summary(times["arithmetic"]),
        "times_the_limit": (ratio(times), None),
    }
    sizes = {"flops": flops(sampler), "parameters": sum(x.size for x in jax.tree.leaves(sampler.network))}

    def record(metric: str, value: float, spread: float | None, repeats: int | None) -> Record:
        return Record("draws", "cpu", name, f"any_{DIM}d", metric, value, spread, n, repeats, SEED)

    found = [record(f"{name}_per_{label}_draws", *pair, repeats) for name, pair in rows.items()]
    return found + [record(name, count, None, None) for name, count in sizes.items() if label == "1m"]


def add_row(table: Table, name: str, sampler: Sampler, times: dict[str, Rounds]) -> None:
    few, many = (summary(times[label]["draws"]).median for label in SIZES)
    limits = (summary(times["1m"][name]).median for name in ("latents", "arithmetic"))
    bar = f" (bar {BAR:g})" if name == f"width_{BAR_WIDTH}" else ""
    quick = f" (bar {BAR_MILLISECONDS:g})" if name == "mixture" else ""
    cells = [f"{1e3 * few:.3f} ms{quick}", f"{many:.3f} s", *(f"{seconds:.3f} s" for seconds in limits)]
    table.add_row(name, *cells, f"{ratio(times['1m']):.2f}{bar}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128, 200, 400])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/draws.jsonl"))
    options = parser.parse_args()
    table = Table(title=f"{DIM}-D draws, {DEPTH} hidden layers")
    for title in ("sampler", "1,000", "1,000,000", "latents", "arithmetic", "times the limit"):
        table.add_column(title, justify="right")
    rows: list[Record] = []
    samplers = {"mixture": mixture(), **{f"width_{width}": build(width) for width in options.widths}}
    for name, sampler in samplers.items():
        rounds = {"1k": 10 * options.rounds, "1m": options.rounds}
        times = {label: measure(sampler, n, rounds[label]) for label, n in SIZES.items()}
        for label in SIZES:
            rows += records(name, sampler, label, times[label])
        add_row(table, name, sampler, times)
    command = f"python benchmarks/draws.py --rounds {options.rounds}"
    write(options.out, Header.of_this_machine("draws", "cpu", SEED, command), rows)
    Console().print(table, f"written to {options.out}")


if __name__ == "__main__":
    main()
