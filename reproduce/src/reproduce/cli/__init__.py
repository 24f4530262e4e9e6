"""The commands that this package adds to `pushforward`, and the same without it: `python -m reproduce`."""

import typer

from pushforward.cli.errors import reported
from reproduce.cli.demo import demo
from reproduce.cli.report import report
from reproduce.cli.study import study

app = typer.Typer(
    help="The paper's experiments: run a study, write its report, or see the whole road once.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
for command in (demo, study, report):
    app.command(command.__name__)(reported(command))
