"""`pushforward sample`: any number of draws to a file; streamed in bounded memory, wherever they can be."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pushforward.checks import check_choice
from pushforward.cli import options
from pushforward.cli.console import stderr, wrote
from pushforward.cli.errors import CommandError
from pushforward.cli.sources import load_sampler, shipped_sampler, target_of
from pushforward.cli.writers import Bar, Wanted, check_draws, check_file, named_writer

if TYPE_CHECKING:
    from pushforward.sampler import Sampler


def sample(
    source: options.Source,
    num_samples: options.NumSamples,
    out: options.OutDraws,
    seed: options.Seed = 1,
    latents: options.Latents = "iid",
    shard: options.Shard = None,
    free: options.Free = False,
    refine: options.Refine = None,
    thin: options.Thin = None,
    target: options.TargetOption = "",
    data: options.Data = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
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
    if shipped := shipped_sampler(source):
        if latents != "iid" or shard or free or refine or thin or target or data:
            raise CommandError(f"images of {source} take -n, --out, --seed, --force and --quiet alone.")
        shipped(str(source), num_samples, out, seed=seed, force=force, quiet=quiet)
        return
    wanted = Wanted(out, num_samples, seed, latents, free)
    # Before JAX is asked for anything.
    check_file(out, force=force, more=(".nc",))
    check_choice(latents, "--latents", ("iid", "sobol"))
    if shard is not None:
        shard.check(wanted, force=force)
    sampler, started = load_sampler(source), time.monotonic()
    named = sampler.parameters is not None and not free
    if shard is not None:
        if named or refine or thin:
            raise CommandError(
                "--shard writes free coordinates, as they are: add --free, and leave out --refine and --thin."
            )
        words = shard.write(source, sampler, wanted, _bar(quiet))
    elif refine or thin:
        why = f"{'--refine' if refine else '--thin'} needs the target"
        words = _whole(sampler, wanted, target_of(source, sampler, target, None, data, why), refine, thin)
    elif out.suffix == ".nc" or (out.suffix == ".npz" and named):
        words = _whole(sampler, wanted)
    else:
        words = _stream(sampler, wanted, _bar(quiet))
    if not quiet:
        wrote(words, out, started)


def _whole(
    sampler: "Sampler", wanted: Wanted, target: Any = None, refine: int | None = None, thin: int | None = None
) -> str:
    """Write draws from memory: refined, thinned, or in a format that is written in one piece."""
    import jax

    check_draws(wanted, sampler, whole=True)
    key, words = jax.random.key(wanted.seed), ""
    draws = sampler.draws(key, wanted.total, latents=wanted.latents)
    if wanted.free:
        draws = type(draws).of(draws.unconstrained, None, draws.about)
    if refine is not None:
        draws = draws.refine(jax.random.fold_in(key, 2**31), target, steps=refine)
        words += f", {refine} MALA steps accepted {draws.about['refined']['acceptance']:.0%}"
    if thin is not None:
        draws = draws.thin(thin, target)
        words += f", thinned to {thin:,}"
    draws.save(wanted.out)
    return f"{draws} in {wanted.out}{words}"


def _stream(sampler: "Sampler", wanted: Wanted, bar: Bar) -> str:
    """Write draws block by block."""
    import jax

    check_draws(wanted, sampler, whole=False)
    key = jax.random.key(wanted.seed)
    with bar(wanted.total) as advance, named_writer(wanted, sampler) as write:
        for block in sampler.stream(key, wanted.total, latents=wanted.latents):
            write(block)
            advance(len(block))
    return f"{wanted.total:,} draws of {sampler.dim} coordinates in {wanted.out}"


def _bar(quiet: bool) -> Bar:
    """Return what makes a progress bar on standard error, of so many draws; it vanishes when all is done."""

    @contextmanager
    def bar(total: int) -> Iterator[Callable[[int], None]]:
        console = stderr()
        if quiet or not console.is_terminal:
            yield lambda count: None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        counts = TextColumn("{task.completed:,} of {task.total:,}")
        columns = (TextColumn("drawing"), BarColumn(bar_width=24), counts, TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as shown:
            task = shown.add_task("drawing", total=total)
            yield lambda count: shown.advance(task, count)

    return bar
