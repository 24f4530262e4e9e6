"""`pushforward fit`: train a sampler and write a run's folder."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from pushforward.checks import check_duration
from pushforward.cli import errors
from pushforward.cli.console import clean, note, pairs, stdout
from pushforward.cli.options import Quiet, Seed, whole

if TYPE_CHECKING:
    from pushforward.base import Target
    from pushforward.recipe.methods import Method
    from pushforward.run.fit import Fit


def _seconds(text: str) -> float:
    try:
        return check_duration(text, "--budget")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def fit(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A built-in name (see `pushforward targets`), or FILE.py:FUNCTION, where FUNCTION is a "
            "log density of one point written in JAX, a NumPyro or PyMC model, a Target, or makes one.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="default, which works for most; or one of the paper's and their kin: kl, fisher, "
            "combined, fisher_stein, kernel, ksd, steingan; or annealed, the default without its network.",
        ),
    ] = "default",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder to write, new or empty.", show_default="runs/TARGET"),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            parser=whole(),
            metavar="D",
            help="Number of coordinates, for a function of your own.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Arrays that the function or model takes, by the names of its arguments.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(parser=whole(), metavar="N", help="Training steps.", show_default="the method's"),
    ] = None,
    seed: Seed = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change one setting of the method, such as width=128; may be given again.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            parser=_seconds,
            metavar="TIME",
            help="Plan the fit for so long, such as 90s, 5m or 1h; with --checkpoint or --steps, stop there.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write down every minute where training stands; the same command goes on from there.",
            show_default=False,
        ),
    ] = None,
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="One of many processes that train together; SLURM, Kubernetes and MPI are found by JAX.",
        ),
    ] = False,
    coordinator: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where process 0 listens.", show_default=False)
    ] = None,
    num_processes: Annotated[
        int | None,
        typer.Option(parser=whole(), metavar="P", help="How many processes there are.", show_default=False),
    ] = None,
    process_id: Annotated[
        int | None,
        typer.Option(parser=whole(0), metavar="I", help="Which this is, from 0.", show_default=False),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a one-shot sampler and write it to a folder.

    The folder holds the sampler (sampler.pf), what was asked and found (run.json) and the training's
    history (history.jsonl). Ctrl-C ends training early and keeps the last good sampler.

    [bold]Examples[/bold]

      pushforward fit rosenbrock

      pushforward fit squiggle --method fisher --steps 5000 --out runs/squiggle-fisher

      pushforward fit my_model.py:log_density --dim 12 --set width=128 --seed 3

      pushforward fit schools.py:model --data schools.npz

      pushforward fit funnel --checkpoint runs/funnel.checkpoint --budget 1h
    """
    from pushforward.cli.many import end_of, join_others
    from pushforward.runs import check_folder, save_run

    chief = join_others(distributed, coordinator, num_processes, process_id)
    quiet = quiet or not chief
    folder = check_folder(out if out is not None else Path("runs") / _name(target), "--out")

    import jax

    from pushforward.cli.models import read_data
    from pushforward.cli.overrides import choose_method
    from pushforward.cli.specs import find_target, is_file

    chosen = choose_method(method, set_ or [])
    found = find_target(target, dim, read_data(data))
    survival = {"budget": budget, "checkpoint": checkpoint, "steps": steps}
    done, failure = _train(jax.random.key(seed), found, chosen, target, quiet=quiet, **survival)
    if not chief:
        end_of(done, failure)
        return
    metrics = _judge(seed, done, found)
    command = _command(target, dim, data, seed, done)
    about = {"spec": target, "name": found.name, "dim": found.dim}
    with errors.undisturbed():
        folder = save_run(
            folder, done, target=about, seed=seed, command=command, message=failure, metrics=metrics,
            model=target.rpartition(":")[0] if is_file(target) else None,
        )  # fmt: skip
    if not quiet:
        _summary(folder, done, metrics)
    if distributed:
        end_of(done, failure and f"{failure} The last finite sampler is in {folder}.")
    if failure:
        raise errors.CommandError(f"{failure} The last finite sampler is in {folder}.", errors.FAILED)
    if done.outcome.name == "INTERRUPTED":
        taken = int(done.history[-1]["step"]) if done.history else 0
        note(f"interrupted after {taken} steps; the last good sampler is in {folder}.")
        raise typer.Exit(errors.INTERRUPTED)


def _name(spec: str) -> str:
    """Return a name for the run's folder: the target's, or the function's."""
    return Path(spec.rpartition(":")[2]).stem


def _train(
    key: Any, target: "Target", method: "Method", spec: str, *, quiet: bool, **survival: Any
) -> tuple["Fit", str]:
    """Return the fit, and why it ended badly where it did."""
    import pushforward as pf
    from pushforward.cli.specs import is_file, line_of

    try:
        with errors.warnings_as_notes():
            return pf.fit(key, target, method=method, progress=not quiet, **survival), ""
    except pf.FitError as error:
        if error.fit is None:
            raise errors.CommandError(str(error), errors.FAILED) from error
        return error.fit, str(error)
    except (ValueError, TypeError) as error:
        if error.__cause__ is None or not is_file(spec):
            raise
        # Say where in the user's own file it broke: our lines are of no use to them.
        place = line_of(error.__cause__, Path(spec.rpartition(":")[0]))
        raise errors.CommandError(f"{place}: {error}") from error


def _judge(seed: int, done: "Fit", target: "Target") -> dict[str, dict[str, Any]]:
    """Judge the sampler, unless Ctrl-C has said that nobody wants to wait, or the target cannot be asked."""
    if not (done.outcome.good or done.outcome.name in ("DIVERGED", "INACCURATE")):
        return {}
    try:
        import jax

        from pushforward.cli.judging import judge

        # Any key but those that trained it will do.
        return judge(jax.random.fold_in(jax.random.key(seed), 2**31), done.sampler, target)
    except KeyboardInterrupt:
        note("interrupted while judging the sampler; it is written without these figures.")
        return {}
    except (RuntimeError, ValueError) as error:
        from pushforward.programs import came_from_running

        if not came_from_running(error):
            raise
        # A log density that raises: hours of training are not to be lost to that.
        note(
            f"the sampler could not be judged ({str(error).splitlines()[0]}); "
            "it is written without these figures."
        )
        return {}


def _command(spec: str, dim: int | None, data: Path | None, seed: int, done: "Fit") -> str:
    """Return what to type to get this run again, whatever the defaults may become."""
    method = done.settings.method
    words = ["pushforward", "fit", spec, "--method", method, "--seed", str(seed)]
    words += [] if dim is None else ["--dim", str(dim)]
    words += [] if data is None else ["--data", str(data)]
    for name, value in done.sampler.about["changed"].items():
        words += ["--set", f"{name}={json.dumps(value) if isinstance(value, list) else value}"]
    return shlex.join(words)


def _summary(folder: Path, done: "Fit", metrics: dict[str, dict[str, Any]]) -> None:
    from pushforward.cli.judging import in_words

    rows = [("outcome", f"{done.outcome.name.lower()}: {done.outcome.value}")]
    times = [f"{phase['phase']} {phase['seconds']:.1f} s" for phase in done.phases]
    rows.append(("time", f"{done.seconds:.1f} s  ({', '.join(times)})"))
    rows += [(name, in_words(metric)) for name, metric in metrics.items()]
    rows.append(("written", f"{clean(folder)}  (sampler.pf, run.json, history.jsonl)"))
    console = stdout()
    console.print(pairs(rows))
    place = shlex.quote(str(folder))
    line = f"pushforward sample {place} -n 1000000 --out draws.npy"
    if not done.outcome.good:
        line = f"pushforward check {place}"
    console.print(Text.assemble("\nNext: ", (line, "bold")), soft_wrap=True)
