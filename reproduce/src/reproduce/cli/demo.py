"""`pushforward demo`: the whole road once, on Rosenbrock, with its figures and a picture."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pushforward.cli.console import clean, in_words, pairs, stdout
from pushforward.cli.options import Seed, Steps

if TYPE_CHECKING:
    from pushforward.base import ExactTarget
    from pushforward.sampler import Sampler

NUM_DRAWS = 1_000_000
NUM_CHAINS, NUM_LANGEVIN_STEPS = 1000, 500
GRID = 240


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")] = Path("runs/demo"),
    steps: Steps = None,
    seed: Seed = 0,
) -> None:
    """Fit Rosenbrock, draw a million samples, judge them and time them.

    Takes less than a minute, and writes a run's folder with a picture in it. A folder that exists is
    left alone: the next free name is used.
    """
    from pushforward.runs import check_folder, free_name

    folder = check_folder(free_name(out), "--out")

    import jax
    import numpy as np

    import pushforward as pf
    from pushforward.runs import save_run
    from pushforward.runs.judging import judge
    from reproduce.report.demo import demo_figure
    from reproduce.targets.grid import log_densities
    from reproduce.timing import interleaved

    console, target = stdout(), pf.targets.rosenbrock()
    assert target.window is not None
    key_draw, key_judge, key_race = jax.random.split(jax.random.key(seed + 1), 3)
    console.print("[bold]1. Fit[/bold] Rosenbrock, from its log density alone.")
    done = pf.fit(jax.random.key(seed), target, steps=steps)
    console.print(f"   {done.outcome.value}, {done.seconds:.0f} s.\n")

    console.print("[bold]2. Draw[/bold] a million points, each in one pass.")
    draw = partial(done.sampler.sample, jax.random.key(0), NUM_DRAWS)
    seconds = interleaved({"draw": draw}, rounds=3)["draw"].median
    draws = np.asarray(done.sampler.sample(key_draw, NUM_DRAWS))
    console.print(f"   {seconds:.2f} s once compiled; the first is {np.round(draws[0], 3)}.\n")

    console.print("[bold]3. Judge[/bold] them: 1.00 is what an exact sampler scores.")
    metrics = judge(key_judge, done.sampler, target, repeats=20, floor_repeats=20)
    _print_quality(console, metrics)
    console.print("[bold]4. Race[/bold] against compiled Langevin dynamics, for 1,000 draws.")
    _print_race(console, done.sampler, target, key_race)

    about = {"spec": "rosenbrock", "name": target.name, "dim": target.dim}
    folder = save_run(
        folder, done, target=about, seed=seed, command=f"pushforward demo --seed {seed}", metrics=metrics
    )
    picture = folder / "demo.png"
    demo_figure(
        picture,
        log_density=log_densities(target, target.window, GRID),
        window=target.window,
        draws=draws,
        history=done.history,
        floor=metrics["ksd_imq_v"]["floor"],
        floor_spread=metrics["ksd_imq_v"]["floor_spread"],
    )
    rows = [("picture", clean(picture)), ("sampler", clean(folder / "sampler.pf"))]
    console.print(pairs([*rows, ("look again", f"pushforward show {clean(folder)}")]))


def _print_quality(console: Console, metrics: dict[str, dict[str, Any]]) -> None:
    labels = {"ksd_imq_v": "KSD, 500 draws", "sliced_w2": "sliced W2, 20,000 draws"}
    console.print(pairs([(f"   {labels[name]}", in_words(m)) for name, m in metrics.items()]))
    console.print()


def _print_race(console: Console, sampler: "Sampler", target: "ExactTarget", key: Any) -> None:
    """Time both as a user would call them, in turns; and judge the chains by the same measure."""
    import equinox as eqx
    import jax.numpy as jnp

    from pushforward.metrics import ksd_imq_v
    from reproduce.rivals import langevin
    from reproduce.rivals.chains import run_chunk
    from reproduce.timing import interleaved

    algorithm = langevin.algorithm(target, num_chains=NUM_CHAINS)

    @eqx.filter_jit
    def chains(algorithm, key):
        state, _ = run_chunk(algorithm, key, algorithm.init(key), jnp.asarray(0), NUM_LANGEVIN_STEPS)
        return algorithm.sample(key, state, NUM_CHAINS)

    contestants = {
        "sampler": lambda: sampler.sample(key, NUM_CHAINS),
        "langevin": lambda: chains(algorithm, key),
    }
    times = interleaved(contestants, rounds=15)
    ksd = {name: ksd_imq_v(call(), target) for name, call in contestants.items()}
    labels = {"sampler": "one-shot sampler", "langevin": f"Langevin, {NUM_LANGEVIN_STEPS} steps"}
    rows = [
        (f"   {label}", f"{1e3 * times[name].median:8.2f} ms   KSD {float(ksd[name]):.3g}")
        for name, label in labels.items()
    ]
    rows.append(("   ratio", f"{times['langevin'].median / times['sampler'].median:8.0f} times faster"))
    console.print(pairs(rows))
    console.print()
