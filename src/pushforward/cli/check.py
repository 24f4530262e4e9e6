"""`pushforward check`: whether a sampler, or a file of draws, can be trusted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pushforward.cli.console import note, stdout
from pushforward.cli.errors import FAILED, CommandError
from pushforward.cli.options import DataOption, DimOption, Seed, TargetOption, whole

if TYPE_CHECKING:
    from pushforward.base import Target

DRAWS = (".npy", ".npz")


def check(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_OR_FILE",
            help="A folder that `pushforward fit` wrote, a file of `sampler.save`, or draws: .npy, .npz.",
            show_default=False,
        ),
    ],
    target: TargetOption = "",
    dim: DimOption = 0,
    data: DataOption = None,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draws to be trusted: .npy or .npz.", show_default=False),
    ] = None,
    draws: Annotated[
        int, typer.Option(parser=whole(200), metavar="N", help="How many draws to judge.")
    ] = 10_000,
    seed: Seed = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a page with plots.", show_default=False)
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 unless the verdict is `trust`.")
    ] = False,
) -> None:
    """Judge draws against their target: find what is wrong and cannot be chance.

    Gives a verdict (trust, caution, do not trust) and, for each line of evidence, a number, what it would
    be for an exact sampler, and what to do about it.

    [bold]Examples[/bold]

      pushforward check runs/rosenbrock

      pushforward check runs/mine --target model.py:log_density --html check.html

      pushforward check runs/schools --target schools.py:model --data schools.npz

      pushforward check chain.npy --target funnel --json | jq .verdict
    """
    import jax

    from pushforward import trust
    from pushforward.trust.plots import plotting

    if html is not None:
        plotting()  # to be missed now, and not when the work is done
    sampler, density = _subject(source, target, dim, data)
    trusted = None if reference is None else _read_draws(reference)
    settings = trust.CheckSettings(num_draws=draws)
    report = trust.check(jax.random.key(seed), sampler, density, reference=trusted, settings=settings)
    if html is not None:
        _write_page(html, report)
    if as_json:
        typer.echo(report.dumps())
    else:
        stdout().print(report)
    if strict and report.verdict != "trust":
        raise typer.Exit(FAILED)


def _write_page(path: Path, report: Any) -> None:
    from pushforward.page import check_page

    path.write_text(check_page(report.as_html(), report.target), encoding="utf-8")
    note(f"wrote {path}")


def _subject(source: Path, spec: str, dim: int, data: Path | None) -> tuple[Any, "Target"]:
    """Return what is to be checked, and the density it is to be checked against."""
    from pushforward.cli.models import read_data
    from pushforward.cli.specs import find_target

    size, given = dim or None, read_data(data)
    if source.suffix in DRAWS:
        if not spec:
            raise CommandError(f"--target is needed: {source} holds draws and does not say of what.")
        return _read_draws(source), find_target(spec, size, given)
    about, sampler = _load(source)
    if not spec:
        spec = _named(about, source)
    return sampler, find_target(spec, size or sampler.dim, given)


def _load(source: Path) -> tuple[Any, Any]:
    from pushforward.runs import load_run
    from pushforward.sampler import load

    if source.is_dir():
        run = load_run(source)
        return run.about["target"], run.sampler()
    sampler = load(source)
    return sampler.about.get("target"), sampler


def _named(about: Any, source: Path) -> str:
    """Return the built-in target that a run names; a user's file is never run because a run says so."""
    from pushforward.cli.specs import is_file
    from pushforward.targets import TARGETS

    spec = about.get("spec") if isinstance(about, dict) else about
    if isinstance(spec, str) and spec in TARGETS and not is_file(spec):
        return spec
    named = f" It was {spec!r}." if isinstance(spec, str) and spec.isprintable() else ""
    raise CommandError(
        f"--target is needed: {source} was not fitted to a built-in target, and no file is run unless you "
        f"name it.{named}"
    )


def _read_draws(path: Path) -> Any:
    """Return the array of an .npy file, or the only one (or `draws`) of an .npz."""
    import numpy as np

    if not path.is_file():
        raise CommandError(f"there is no file {path}.")
    if path.suffix not in DRAWS:
        raise CommandError(f"draws are read from .npy or .npz; got {path}.")
    try:
        held = np.load(path, allow_pickle=False)
        if path.suffix == ".npy":
            return held
        with held:
            names = list(held.files)
            name = "draws" if "draws" in names else names[0] if len(names) == 1 else None
            if name is not None:
                return held[name]
    except (ValueError, OSError, EOFError) as error:
        raise CommandError(f"{path} does not hold an array of numbers: {error}") from error
    raise CommandError(f"{path} must hold one array, or one named 'draws'; it holds {', '.join(names)}.")
