"""`pushforward break-even`: after how many draws training has paid for itself against NUTS."""

import json

import typer

from pushforward.cli import options
from pushforward.cli.console import pairs, stdout


def break_even(
    source: options.Source,
    target: options.TargetOption = "",
    dim: options.Dim = None,
    data: options.Data = None,
    budget: options.NutsBudget = 60.0,
    seed: options.Seed = 3,
    as_json: options.Json = False,
) -> None:
    """Say after how many effective draws training has paid for itself against NUTS on this machine.

    Training counts with the seconds that the run took, the sampler's draws and NUTS with what they take
    here and now.

    [bold]Examples[/bold]
      pushforward break-even runs/rosenbrock
      pushforward break-even runs/mine --target model.py:log_density --dim 12 --json | jq .draws
    """
    import jax

    from pushforward.cli.sources import load_sampler, target_of
    from pushforward.payback import break_even as measure

    sampler = load_sampler(source)
    density = target_of(source, sampler, target, dim, data)
    found = measure(jax.random.key(seed), sampler, density, budget=budget)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2))
    else:
        stdout().print(pairs(found.rows()))
