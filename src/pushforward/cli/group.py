"""The commands of the library, then those of other installed packages, imported when they are asked for."""

import typer
from typer.core import TyperGroup

from pushforward.cli.errors import BAD_INPUT, complain, reported
from pushforward.extensions import COMMANDS, extensions, remedy


class Commands(TyperGroup):
    """A group that also knows the entry points `pushforward.commands`."""

    def list_commands(self, ctx):
        """Return the names of all commands."""
        return [*dict.fromkeys((*super().list_commands(ctx), *extensions(COMMANDS)))]

    def get_command(self, ctx, cmd_name):
        """Return a command; say what to install where a package that is known to have it is missing."""
        ours = super().get_command(ctx, cmd_name)
        if ours is not None:
            return ours
        if words := remedy(COMMANDS, cmd_name):
            complain(words)
            raise typer.Exit(BAD_INPUT)
        if cmd_name not in extensions(COMMANDS):
            return None
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
        alone.command(cmd_name)(reported(extensions(COMMANDS)[cmd_name].load()))
        return typer.main.get_command(alone)
