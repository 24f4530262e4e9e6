"""`pushforward sample`: stream any number of draws to a file in bounded memory."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pushforward.cli.console import note, size, stderr
from pushforward.cli.options import Quiet, Seed, Source, load_sampler

if TYPE_CHECKING:
    from collections.abc import Callable


def _count(text: str) -> int:
    """Read `1000000`, `1_000_000` and `1e6` alike."""
    try:
        value = float(text) if "e" in text.lower() else int(text)
    except ValueError:
        value = math.nan
    if not (1 <= value < math.inf and value == int(value)):
        raise typer.BadParameter(f"must be a whole number of at least 1; got {text!r}.")
    return int(value)


def sample(
    source: Source,
    num_samples: Annotated[
        int,
        typer.Option(
            "--num-samples", "-n", parser=_count, metavar="N", help="How many draws.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write: .npy, .npz or .csv.", show_default=False
        ),
    ],
    seed: Seed = 1,
    latents: Annotated[
        str,
        typer.Option(
            help="iid, or sobol: a scrambled low-discrepancy sequence, for averages that converge faster."
        ),
    ] = "iid",
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    quiet: Quiet = False,
) -> None:
    """Draw from a trained sampler and write the draws to a file.

    Memory stays bounded however many are asked for, and the first draws do not depend on how many
    follow. The file appears when it is complete: an interrupted run leaves nothing behind.
    In Python, the same draws are [bold]pf.load(FILE).sample(jax.random.key(SEED), N)[/bold].

    [bold]Examples[/bold]

      pushforward sample runs/rosenbrock -n 1e6 --out draws.npy

      pushforward sample runs/rosenbrock -n 65536 --latents sobol --out draws.npz

      pushforward sample rosenbrock.pf -n 1000 --seed 7 --out draws.csv
    """
    from pushforward.checks import check_choice
    from pushforward.cli.writers import check_file, check_space, writer

    check_file(out, force=force)
    check_choice(latents, "--latents", ("iid", "sobol"))

    import jax
    import numpy as np

    sampler = load_sampler(source)
    shape, dtype = (num_samples, sampler.dim), np.dtype(sampler.frame.centre.dtype)
    check_space(out, shape, dtype)
    started = time.monotonic()
    with _bar(num_samples, show=not quiet) as advance, writer(out, shape, dtype) as write:
        for block in sampler.stream(jax.random.key(seed), num_samples, latents=latents):
            write(block)
            advance(len(block))
    if not quiet:
        seconds = time.monotonic() - started
        note(
            f"{num_samples:,} draws of {sampler.dim} coordinates in {out} "
            f"({size(out.stat().st_size)}, {seconds:.1f} s)."
        )


@contextmanager
def _bar(total: int, *, show: bool) -> "Iterator[Callable[[int], None]]":
    """Yield a function that moves a progress bar on standard error; it vanishes when all is done."""
    console = stderr()
    if not show or not console.is_terminal:
        yield lambda count: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    counts = TextColumn("{task.completed:,} of {task.total:,}")
    columns = (TextColumn("drawing"), BarColumn(bar_width=24), counts, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("drawing", total=total)
        yield lambda count: bar.advance(task, count)
