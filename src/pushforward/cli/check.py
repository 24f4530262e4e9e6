"""`pushforward check`: whether a sampler, or a file of draws, can be trusted."""

from pathlib import Path
from typing import Any

import typer

from pushforward.cli import options
from pushforward.cli.console import note, stdout
from pushforward.cli.errors import FAILED, CommandError

DRAWS = (".npy", ".npz")


def check(
    source: options.SourceOrArrays,
    target: options.TargetOption = "",
    dim: options.Dim = None,
    data: options.Data = None,
    reference: options.Reference = None,
    draws: options.NumJudged = 10_000,
    seed: options.Seed = 2,
    as_json: options.Json = False,
    html: options.Html = None,
    strict: options.Strict = False,
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
    from pushforward.page import check_page
    from pushforward.trust.plots import plotting

    if html is not None:
        plotting()  # to be missed now, and not when the work is done
    sampler, density = _subject(source, target, dim, data)
    trusted = None if reference is None else _read_draws(reference)
    settings = trust.CheckSettings(num_draws=draws)
    report = trust.check(jax.random.key(seed), sampler, density, reference=trusted, settings=settings)
    if html is not None:
        html.write_text(check_page(report.as_html(), report.target), encoding="utf-8")
        note(f"wrote {html}")
    if as_json:
        typer.echo(report.dumps())
    else:
        stdout().print(report)
    if strict and report.verdict != "trust":
        raise typer.Exit(FAILED)


def _subject(source: Path, spec: str, dim: int | None, data: Path | None) -> tuple[Any, Any]:
    """Return what is to be checked, and the density it is to be checked against."""
    from pushforward.cli.models import read_data
    from pushforward.cli.sources import load_sampler, target_of
    from pushforward.cli.specs import find_target

    if source.suffix not in DRAWS:
        sampler = load_sampler(source)
        return sampler, target_of(source, sampler, spec, dim, data)
    if not spec:
        raise CommandError(f"--target is needed: {source} holds draws and does not say of what.")
    return _read_draws(source), find_target(spec, dim, read_data(data))


def _read_draws(path: Path) -> Any:
    """Return the array of an .npy file, or the only one (or `draws`) of an .npz."""
    from pushforward.arrays import read_npy, read_npz
    from pushforward.container import BadFileError

    if path.suffix not in DRAWS:
        raise CommandError(f"draws are read from .npy or .npz; got {path}.")
    try:
        held = {"draws": read_npy(path)} if path.suffix == ".npy" else read_npz(path)
    except BadFileError as error:
        raise CommandError(f"{path} does not hold an array of numbers: {error}") from error
    if "draws" not in held and len(held) != 1:
        names = ", ".join(held) or "none"
        raise CommandError(f"{path} must hold one array, or one named 'draws'; it holds {names}.")
    return held["draws"] if "draws" in held else next(iter(held.values()))
