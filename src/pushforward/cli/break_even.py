"""`pushforward break-even`: after how many draws training has paid for itself against NUTS."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pushforward.cli.console import clean, pairs, stdout
from pushforward.cli.errors import CommandError
from pushforward.cli.options import DataOption, DimOption, Seed, Source, TargetOption, load_sampler


def break_even(
    source: Source,
    target: TargetOption = "",
    dim: DimOption = 0,
    data: DataOption = None,
    budget: Annotated[float, typer.Option(min=1.0, metavar="SECONDS", help="How long NUTS may draw.")] = 60.0,
    seed: Seed = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Say after how many effective draws training has paid for itself against NUTS on this machine.

    Training counts with the seconds that the run took, the sampler's draws and NUTS with what they take
    here and now.

    [bold]Examples[/bold]

      pushforward break-even runs/rosenbrock

      pushforward break-even runs/mine --target model.py:log_density --dim 12 --json | jq .draws
    """
    import jax

    from pushforward.cli.models import read_data
    from pushforward.cli.specs import find_target
    from pushforward.payback import break_even as measure

    sampler, spec = load_sampler(source), target or _named(source)
    density = find_target(spec, dim or sampler.dim, read_data(data))
    found = measure(jax.random.key(seed), sampler, density, budget=budget)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2))
    else:
        stdout().print(pairs(found.rows()))


def _named(source: Path) -> str:
    """Return the built-in target that a run or a sampler names; code is never run because a file says so."""
    from pushforward.runs import load_run
    from pushforward.targets import TARGETS

    spec = (
        load_run(source).about["target"]["spec"]
        if source.is_dir()
        else load_sampler(source).about.get("target")
    )
    if isinstance(spec, str) and spec in TARGETS:
        return spec
    raise CommandError(
        f"--target is needed: {source} was not fitted to a built-in target ({clean(spec)}), and no file is "
        "run unless you name it. Add, for instance, `--target model.py:log_density`."
    )
