"""`pushforward sample`: stream any number of draws to a file in bounded memory."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pushforward.cli.console import note, size, stderr
from pushforward.cli.errors import CommandError
from pushforward.cli.options import Quiet, Seed, Source, load_sampler, shipped_sampler, whole
from pushforward.cli.part import Part, check_part, parse_part, write_part

if TYPE_CHECKING:
    from collections.abc import Callable


def sample(
    source: Source,
    num_samples: Annotated[
        int,
        typer.Option(
            "--num-samples", "-n", parser=whole(), metavar="N", help="How many draws.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write: .npy, .npz, .csv, .parquet or .nc (ArviZ).",
            show_default=False,
        ),
    ],
    seed: Seed = 1,
    latents: Annotated[
        str,
        typer.Option(
            help="iid, or sobol: a scrambled low-discrepancy sequence, for averages that converge faster."
        ),
    ] = "iid",
    shard: Annotated[
        Part | None,
        typer.Option(
            parser=parse_part,
            metavar="K/N",
            help="Only the K-th of N parts of these draws, for many machines; see `pushforward join`.",
            show_default=False,
        ),
    ] = None,
    free: Annotated[
        bool,
        typer.Option(
            "--free", help="Write the coordinates in R^dim, not named values inside their constraints."
        ),
    ] = False,
    refine: Annotated[
        int | None,
        typer.Option(
            parser=whole(),
            metavar="STEPS",
            help="Move each draw by so many MALA steps; needs the target.",
            show_default=False,
        ),
    ] = None,
    thin: Annotated[
        int | None,
        typer.Option(
            parser=whole(),
            metavar="M",
            help="Keep the M draws that stand best for the target, which it needs.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="For --refine and --thin: as given to `fit`.",
            show_default="that of the run",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Data of --target.", show_default=False)
    ] = None,
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

      pushforward sample runs/rosenbrock -n 1e9 --shard 2/7 --out part-2.npy

      pushforward sample mnist -n 64 --out grid.png
    """
    from pushforward.checks import check_choice
    from pushforward.cli import named
    from pushforward.cli.writers import check_file, check_space, writer

    if shipped := shipped_sampler(source):
        if latents != "iid" or shard or free or refine or thin or target or data:
            raise CommandError(f"images of {source} take -n, --out, --seed, --force and --quiet alone.")
        shipped(str(source), num_samples, out, seed=seed, force=force, quiet=quiet)
        return
    check_file(out, force=force, more=(".nc",))
    check_choice(latents, "--latents", ("iid", "sobol"))
    if shard is not None:
        check_part(shard, out, num_samples, force=force)

    import jax
    import numpy as np

    sampler = load_sampler(source)
    if shard is not None and ((sampler.parameters is not None and not free) or refine or thin):
        raise CommandError(
            "--shard writes free coordinates, as they are: add --free, and leave out --refine and --thin."
        )
    if shard is not None:
        write_part(
            shard, source, sampler, out, num_samples, seed=seed, latents=latents,
            bar=lambda rows: _bar(rows, show=not quiet),
        )  # fmt: skip
        if not quiet:
            note(f"part {shard} of {num_samples:,} draws in {out}; `pushforward join` puts all together.")
        return
    names = None if free else sampler.parameters
    width = sampler.dim if names is None else named.numbers(names)
    shape, dtype = (num_samples, width), np.dtype(sampler.frame.centre.dtype)
    check_space(out, shape, dtype)
    started = time.monotonic()
    if refine or thin or out.suffix == ".nc" or (names is not None and out.suffix == ".npz"):
        named.check_memory(out, num_samples, width)
        key_draw, key_refine = jax.random.key(seed), jax.random.fold_in(jax.random.key(seed), 2**31)
        found = None
        if refine or thin:
            option = "--refine" if refine else "--thin"
            found = named.find_again(source, target, sampler.dim, data, option)
        draws, words = named.whole(sampler, key_draw, num_samples, latents, free=free), ""
        if found is not None:
            draws, words = named.improve(draws, found, key_refine, refine=refine, thin=thin)
        draws.save(out)
        if not quiet:
            seconds = time.monotonic() - started
            note(f"{draws} in {out} ({size(out.stat().st_size)}, {seconds:.1f} s). {words}".rstrip())
        return
    begun = writer(out, shape, dtype) if names is None else named.named_writer(out, num_samples, names, dtype)
    with _bar(num_samples, show=not quiet) as advance, begun as write:
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
