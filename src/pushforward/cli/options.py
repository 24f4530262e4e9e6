"""Options that more than one command takes, so that they read alike everywhere."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pushforward.cli.errors import CommandError
from pushforward.extensions import SAMPLERS, extensions, remedy

if TYPE_CHECKING:
    from pushforward.sampler import Sampler


def whole(least: int = 1, most: int | None = None) -> Callable[[Any], int]:
    """Return what reads a whole number: `1000000`, `1_000_000` and `1e6` alike."""
    wanted = f"a whole number of at least {least}" + (f" and at most {most}" if most is not None else "")

    def count(text: Any) -> int:
        # A default comes here too, and is a number already.
        text = str(text)
        try:
            value = float(text) if "e" in text.lower() else int(text)
        except ValueError:
            value = math.nan
        if not (least <= value < math.inf and value == int(value) and (most is None or value <= most)):
            raise typer.BadParameter(f"must be {wanted}; got {text!r}.")
        return int(value)

    return count


Seed = Annotated[
    int,
    typer.Option(parser=whole(0, 2**32 - 1), metavar="S", help="The same seed gives the same result."),
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
TargetOption = Annotated[
    str,
    typer.Option(
        metavar="TARGET",
        help="A built-in name or `file.py:function`; needed where a run does not name a built-in one.",
        show_default=False,
    ),
]
DimOption = Annotated[int, typer.Option(min=0, help="Coordinates, for a plain function.", show_default=False)]
DataOption = Annotated[
    Path | None, typer.Option(metavar="FILE.npz", help="Data of --target.", show_default=False)
]


def shipped_sampler(source: Path) -> Callable[..., None] | None:
    """Return what writes draws of a sampler that comes with a package; `None` for a file of the user's."""
    if source.exists():
        return None
    if words := remedy(SAMPLERS, str(source)):
        raise CommandError(words)
    found = extensions(SAMPLERS).get(str(source))
    return None if found is None else found.load()


def load_sampler(source: Path) -> "Sampler":
    """Return the sampler of a run's folder or of a file."""
    from pushforward.runs import load_run
    from pushforward.sampler import load

    return load_run(source).sampler() if source.is_dir() else load(source)
