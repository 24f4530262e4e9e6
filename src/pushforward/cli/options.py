"""The arguments and options of the commands, so that a command is a list of names and all read alike."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pushforward.checks import check_duration
from pushforward.cli.part import Part, parse_part


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


def duration(text: Any) -> float:
    """Read a time: `90`, `90s`, `5m` and `1.5h`."""
    try:
        return check_duration(str(text), "--budget")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _argument(metavar: str, words: str) -> Any:
    return typer.Argument(metavar=metavar, help=words, show_default=False)


def _option(words: str, *names: str, default: bool | str = False, **more: Any) -> Any:
    """Return an option; what it is without being given is said by the help only where `default` says so."""
    return typer.Option(*names, help=words, show_default=default, **more)


def _count(metavar: str, words: str, *names: str, least: int = 1, **more: Any) -> Any:
    return _option(words, *names, parser=whole(least), metavar=metavar, **more)


_RUN = "A folder that `pushforward fit` wrote{}a file of `sampler.save`{}."
_SHARD = "Only the K-th of N parts of these draws, for many machines; see `pushforward join`."
_TARGET = (
    "A built-in name (see `pushforward targets`), or FILE.py:FUNCTION, where FUNCTION is a log density of "
    "one point written in JAX, a NumPyro or PyMC model, a Target, or makes one."
)
_METHOD = (
    "default, which works for most; or one of the paper's and their kin: kl, fisher, combined, "
    "fisher_stein, kernel, ksd, steingan; or annealed, the default without its network."
)

Target = Annotated[str, _argument("TARGET", _TARGET)]
Source = Annotated[Path, _argument("RUN_OR_FILE", _RUN.format(", or ", ""))]
SourceOrArrays = Annotated[Path, _argument("RUN_OR_FILE", _RUN.format(", ", ", or draws: .npy, .npz"))]
SourceOrDraws = Annotated[Path, _argument("RUN_OR_FILE", _RUN.format(", ", ", or of draws"))]
Parts = Annotated[list[Path], _argument("PART...", "Files of `sample --shard`, in any order.")]

Out = Annotated[Path, _option("File to write.", "--out", "-o", metavar="FILE")]
OutFolder = Annotated[Path | None, _option("Folder to write.", "--out", "-o", default="runs/TARGET")]
Force = Annotated[bool, _option("Overwrite FILE.", "--force")]
Quiet = Annotated[bool, _option("No progress bar and no summary.", "--quiet", "-q")]
Json = Annotated[bool, _option("Print it as JSON.", "--json")]
Seed = Annotated[
    int,
    _option("The same seed gives the same result.", default=True, parser=whole(0, 2**32 - 1), metavar="S"),
]

TargetOption = Annotated[
    str, _option("As given to `fit`; needed where a run does not name a built-in one.", metavar="TARGET")
]
Dim = Annotated[int | None, _count("D", "Number of coordinates, for a function of your own.")]
Data = Annotated[
    Path | None, _option("Arrays that the target takes, by the names of its arguments.", metavar="FILE.npz")
]

Method = Annotated[str, _option(_METHOD, "--method", "-m", default=True)]
Steps = Annotated[int | None, _count("N", "Training steps.", default="the method's")]
Changes = Annotated[
    list[str] | None,
    _option("Change a setting, such as width=128; may be given again.", "--set", metavar="NAME=VALUE"),
]
Budget = Annotated[
    float | None,
    _option(
        "Plan the fit for so long, such as 90s, 5m or 1h; with --checkpoint or --steps, stop there.",
        parser=duration,
        metavar="TIME",
    ),
]
NutsBudget = Annotated[
    float, _option("How long NUTS may draw, such as 90s.", default=True, parser=duration, metavar="TIME")
]
Checkpoint = Annotated[
    Path | None,
    _option("Note every minute where training stands; the same command goes on from there.", metavar="DIR"),
]
Distributed = Annotated[
    bool,
    _option(
        "One of many processes that train together; SLURM, Kubernetes and MPI are found by JAX.",
        "--distributed",
    ),
]
Coordinator = Annotated[str | None, _option("Where process 0 listens.", metavar="HOST:PORT")]
Processes = Annotated[int | None, _count("P", "How many processes there are.")]
Process = Annotated[int | None, _count("I", "Which this is, from 0.", least=0)]

NumSamples = Annotated[int, _count("N", "How many draws.", "--num-samples", "-n")]
OutDraws = Annotated[
    Path, _option("File to write: .npy, .npz, .csv, .parquet or .nc (ArviZ).", "--out", "-o", metavar="FILE")
]
Latents = Annotated[
    str, _option("iid, or sobol, whose averages converge faster: a low-discrepancy sequence.", default=True)
]
Shard = Annotated[Part | None, _option(_SHARD, parser=parse_part, metavar="K/N")]
Free = Annotated[
    bool, _option("Write the coordinates in R^dim, not named values inside their constraints.", "--free")
]
Refine = Annotated[int | None, _count("STEPS", "Move each draw by so many MALA steps; needs the target.")]
Thin = Annotated[int | None, _count("M", "Keep the M draws that stand best for the target, which it needs.")]

Reference = Annotated[Path | None, _option("Draws to be trusted: .npy or .npz.", metavar="FILE")]
NumJudged = Annotated[int, _count("N", "How many draws to judge.", least=200, default=True)]
Html = Annotated[Path | None, _option("Also write a page with plots.", metavar="FILE")]
Strict = Annotated[bool, _option("Exit with 1 unless the verdict is `trust`.", "--strict")]
