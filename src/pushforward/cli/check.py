"""`pushforward check`: whether a sampler, or a file of draws, can be trusted."""

from pathlib import Path
from typing import Any

import typer

from pushforward.arrays import read_npz
from pushforward.atomic import check_place, write_atomically
from pushforward.cli import options
from pushforward.cli.console import note, stdout
from pushforward.cli.errors import FAILED, CommandError
from pushforward.container import BadFileError
from pushforward.page import check_page


def check(
    source: options.SourceOrDraws,
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
    from pushforward.trust.plots import plotting

    if html is not None:
        # To be missed now, and not when the work is done.
        plotting()
        check_place(html)
    sampler, density = _subject(source, target, dim, data)
    trusted = None if reference is None else _read_draws(reference, density)
    settings = trust.CheckSettings(num_draws=draws)
    report = trust.check(jax.random.key(seed), sampler, density, reference=trusted, settings=settings)
    if html is not None:
        write_atomically(html, check_page(report.as_html(), report.target).encode())
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
    from pushforward.draws.files import FORMATS

    if source.suffix not in FORMATS:
        sampler = load_sampler(source)
        return sampler, target_of(source, sampler, spec, dim, data)
    if not spec:
        raise CommandError(f"--target is needed: {source} holds draws and does not say of what.")
    density = find_target(spec, dim, read_data(data))
    return _read_draws(source, density), density


def _read_draws(path: Path, density: Any) -> Any:
    """Return draws as the density sees them: `draws` of an .npz, a file's only array, or its named values."""
    from pushforward.draws.files import FORMATS, load_draws

    if path.suffix not in FORMATS:
        raise CommandError(f"draws are read from {', '.join(FORMATS)}; got {path}.")
    if path.suffix == ".npz" and "draws" in (held := read_npz(path)):
        return held["draws"]
    draws = load_draws(path)
    if draws.coordinates is not None:
        return draws
    if len(draws.names) == 1 and draws[draws.names[0]].ndim == 2:
        return draws[draws.names[0]]
    try:
        return load_draws(path, like=density)
    except ValueError as error:
        raise BadFileError(f"{path} does not hold draws of {density.name!r}: {error}") from None
