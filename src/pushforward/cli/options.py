"""Options that more than one command takes, so that they read alike everywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pushforward.sampler import Sampler

Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, metavar="S", help="The same seed gives the same result.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="RUN_OR_FILE",
        help="A folder that `pushforward fit` wrote, or a file of `sampler.save`.",
        show_default=False,
    ),
]


def load_sampler(source: Path) -> "Sampler":
    """Return the sampler of a run's folder or of a file."""
    from pushforward.runs import load_run
    from pushforward.sampler import load

    return load_run(source).sampler() if source.is_dir() else load(source)
