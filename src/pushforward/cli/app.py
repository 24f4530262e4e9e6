"""The `pushforward` command: which subcommands there are. A new one is a file and a line here,
or an entry point of another package: see `extensions`.
"""

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from pushforward.cli.break_even import break_even
from pushforward.cli.check import check
from pushforward.cli.errors import reported
from pushforward.cli.export import export
from pushforward.cli.fit import fit
from pushforward.cli.group import Commands
from pushforward.cli.join import join
from pushforward.cli.sample import sample
from pushforward.cli.show import show
from pushforward.cli.targets import targets

app = typer.Typer(
    name="pushforward",
    cls=Commands,
    help="""One-shot samplers for un-normalised densities: train once, then draw millions in a single pass.

    [bold]Start here[/bold]

      pushforward fit rosenbrock --out runs/rosenbrock

      pushforward sample runs/rosenbrock -n 1000000 --out draws.npy

      pushforward check runs/rosenbrock

      pushforward show runs/rosenbrock""",
    epilog="Exit codes: 0 done, 1 the work failed, 2 the request makes no sense, 130 interrupted.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
for command in (targets, fit, sample, join, check, break_even, export, show):
    app.command(command.__name__.replace("_", "-"))(reported(command))


def _version(wanted: bool) -> bool:
    if wanted:
        from importlib import metadata

        typer.echo(f"pushforward {metadata.version('pushforward')}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # Its own help is that of the app; `--version` is done before this is called.
    del version


def _as_ctrl_c(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    # Schedulers and `timeout` send SIGTERM first: like Ctrl-C, it must not cost the last good sampler.
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    sys.exit(app(prog_name="pushforward"))
