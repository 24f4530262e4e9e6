"""`python -m reproduce`: the commands of this package, where the script `pushforward` is not on the path."""

from reproduce.cli import app

app(prog_name="python -m reproduce")
