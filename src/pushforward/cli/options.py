"""The arguments and options of the commands, so that a command is a list of names and all read alike."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pushforward.checks import check_duration
from pushforward.cli.shards import Part


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


def _option(metavar: str | None, words: str, *names: str, default: bool | str = False, **more: Any) -> Any:
    """Return an option; what it is without being given is said by the help only where `default` says so."""
    return typer.Option(*names, metavar=metavar, help=words, show_default=default, **more)


def _count(
    metavar: str, words: str, *names: str, least: int = 1, most: int | None = None, **more: Any
) -> Any:
    return _option(metavar, words, *names, parser=whole(least, most), **more)


_RUN = "A folder that `pushforward fit` wrote{}a file of `sampler.save`{}."
_TARGET = (
    "A built-in name (see `pushforward targets`), or FILE.py:FUNCTION, where FUNCTION is a log density of "
    "one point written in JAX, a NumPyro or PyMC model, a Target, or makes one."
)
_METHOD = (
    "default, which works for most; or one of the paper's and their kin: kl, fisher, combined, "
    "fisher_stein, kernel, ksd, steingan; or annealed, the default without its network."
)
_BUDGET = "Plan the fit for so long, such as 90s, 5m or 1h; with --checkpoint or --steps, stop there."
_CHECKPOINT = "Write down every minute where training stands; the same command goes on from there."
_MANY = "One of many processes that train together; SLURM, Kubernetes and MPI are found by JAX."
_LATENTS = "iid, or sobol: a scrambled low-discrepancy sequence, for averages that converge faster."
_SHARD = "Only the K-th of N parts of these draws, for many machines; see `pushforward join`."
_FREE = "Write the coordinates in R^dim, not named values inside their constraints."
_DRAWS = "File to write: .npy, .npz, .csv, .parquet or .nc (ArviZ)."

# What is worked on.
Target = Annotated[str, _argument("TARGET", _TARGET)]
Source = Annotated[Path, _argument("RUN_OR_FILE", _RUN.format(", or ", ""))]
SourceOrDraws = Annotated[Path, _argument("RUN_OR_FILE", _RUN.format(", ", ", or of draws"))]
Parts = Annotated[list[Path], _argument("PART...", "Files of `sample --shard`, in any order.")]

# Of more than one command.
Out = Annotated[Path, _option("FILE", "File to write.", "--out", "-o")]
Force = Annotated[bool, _option(None, "Overwrite FILE.", "--force")]
Quiet = Annotated[bool, _option(None, "No progress bar and no summary.", "--quiet", "-q")]
Json = Annotated[bool, _option(None, "Print it as JSON.", "--json")]
Seed = Annotated[int, _count("S", "Same seed, same result.", least=0, most=2**32 - 1, default=True)]
Dim = Annotated[int | None, _count("D", "Number of coordinates, for a function of your own.")]
Data = Annotated[Path | None, _option("FILE.npz", "Arrays for the target, by the names of its arguments.")]
TargetOption = Annotated[str, _option("TARGET", "As given to `fit`, where the run does not name a built-in.")]

# Of `fit`.
Method = Annotated[str, _option(None, _METHOD, "--method", "-m", default=True)]
OutFolder = Annotated[Path | None, _option(None, "Folder to write.", "--out", "-o", default="runs/TARGET")]
Steps = Annotated[int | None, _count("N", "Training steps.", default="the method's")]
Changes = Annotated[list[str] | None, _option("NAME=VALUE", "Change a setting; may be given again.", "--set")]
Budget = Annotated[float | None, _option("TIME", _BUDGET, parser=duration)]
Checkpoint = Annotated[Path | None, _option("DIR", _CHECKPOINT)]
Distributed = Annotated[bool, _option(None, _MANY, "--distributed")]
Coordinator = Annotated[str | None, _option("HOST:PORT", "Where process 0 listens.")]
Processes = Annotated[int | None, _count("P", "How many processes there are.")]
Process = Annotated[int | None, _count("I", "Which this is, from 0.", least=0)]

# Of `sample`.
NumSamples = Annotated[int, _count("N", "How many draws.", "--num-samples", "-n")]
OutDraws = Annotated[Path, _option("FILE", _DRAWS, "--out", "-o")]
Latents = Annotated[str, _option(None, _LATENTS, default=True)]
Shard = Annotated[Part | None, _option("K/N", _SHARD, parser=Part.parse)]
Free = Annotated[bool, _option(None, _FREE, "--free")]
Refine = Annotated[int | None, _count("STEPS", "Move each draw by so many MALA steps; needs the target.")]
Thin = Annotated[int | None, _count("M", "Keep the M draws that stand best for the target, which it needs.")]

# Of `check` and `break-even`.
Reference = Annotated[Path | None, _option("FILE", "Draws to be trusted.")]
NumJudged = Annotated[int, _count("N", "How many draws to judge.", least=200, default=True)]
Html = Annotated[Path | None, _option("FILE", "Also write a page with plots.")]
Strict = Annotated[bool, _option(None, "Exit with 1 unless the verdict is `trust`.", "--strict")]
NutsBudget = Annotated[float, _option("TIME", "How long NUTS may draw.", parser=duration, default=True)]
