"""The command line: one file per command; what is heavy is imported where it is used."""

from pushforward.cli.app import app as app
from pushforward.cli.app import main as main
