"""`pushforward targets`: what can be fitted by name."""

import inspect

from rich.markup import escape
from rich.table import Table

from pushforward.cli.console import stdout


def targets() -> None:
    """List the built-in targets.

    A target with an exact sampler lets `fit` hold its own draws against the truth. Sizes that can be
    changed are marked with a star: [bold]pushforward fit gaussian --dim 10[/bold].
    """
    from pushforward.base import ExactTarget
    from pushforward.targets import TARGETS

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", style="cyan", no_wrap=True)
    table.add_column("dim", justify="right", no_wrap=True)
    table.add_column("exact", no_wrap=True)
    table.add_column("what it is", overflow="fold")
    for name, build in TARGETS.items():
        target = build()
        star = "*" if "dim" in inspect.signature(build).parameters else " "
        exact = "yes" if isinstance(target, ExactTarget) else "no"
        words = (inspect.getdoc(build) or inspect.getdoc(target) or "").partition("\n")[0]
        words = words.removeprefix("Return ")
        table.add_row(name, f"{target.dim}{star}", exact, escape(words[:1].upper() + words[1:]))
    console = stdout()
    console.print(table)
    console.print("\n[dim]* takes --dim. Fit one with[/dim] pushforward fit NAME")
