"""`pushforward fit`: train a sampler and write a run's folder."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from pushforward.cli import errors, options
from pushforward.cli.console import clean, in_words, note, pairs, stdout

if TYPE_CHECKING:
    from pushforward.base import Target
    from pushforward.recipe.methods import Method
    from pushforward.run.fit import Fit


def fit(
    target: options.Target,
    method: options.Method = "default",
    out: options.OutFolder = None,
    dim: options.Dim = None,
    data: options.Data = None,
    steps: options.Steps = None,
    seed: options.Seed = 0,
    set_: options.Changes = None,
    budget: options.Budget = None,
    checkpoint: options.Checkpoint = None,
    distributed: options.Distributed = False,
    coordinator: options.Coordinator = None,
    num_processes: options.Processes = None,
    process_id: options.Process = None,
    quiet: options.Quiet = False,
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
    from pushforward.cli.many import end_of, join_others, who_keeps
    from pushforward.runs import check_folder, save_run

    chief = join_others(distributed, coordinator, num_processes, process_id)
    quiet = quiet or not chief
    folder = check_folder(out if out is not None else Path("runs") / _name(target), "--out")
    from pushforward.cli.models import read_data
    from pushforward.cli.overrides import choose_method
    from pushforward.cli.specs import find_target, model_of

    chosen, found = choose_method(method, set_ or []), find_target(target, dim, read_data(data))
    limits = {"budget": budget, "checkpoint": checkpoint, "steps": steps}
    done, failure = _train(seed, found, chosen, target, progress=not quiet, **limits)
    chief, folder = who_keeps(chief, done, folder, process_id)
    if chief:
        metrics, command = _judge(seed, done, found), _command(target, dim, data, seed, done)
        about = {"spec": target, "name": found.name, "dim": found.dim}
        story = {"target": about, "seed": seed, "command": command, "message": failure, "metrics": metrics}
        with errors.undisturbed():
            folder = save_run(folder, done, model=model_of(target), **story)
        if not quiet:
            _summary(folder, done, metrics)
        failure = failure and f"{failure} The last finite sampler is in {folder}."
    if distributed:
        end_of(done, failure)
    if chief and failure:
        raise errors.CommandError(failure, errors.FAILED)
    if chief and done.outcome.name == "INTERRUPTED":
        taken = int(done.history[-1]["step"]) if done.history else 0
        note(f"interrupted after {taken} steps; the last good sampler is in {folder}.")
        raise typer.Exit(errors.INTERRUPTED)


def _name(spec: str) -> str:
    """Return a name for the run's folder: the target's, or the function's."""
    return Path(spec.rpartition(":")[2]).stem


def _train(seed: int, target: "Target", method: "Method", spec: str, **survival: Any) -> tuple["Fit", str]:
    """Return the fit, and why it ended badly where it did."""
    import jax

    import pushforward as pf
    from pushforward.cli.specs import line_of, model_of

    try:
        return pf.fit(jax.random.key(seed), target, method=method, **survival), ""
    except pf.FitError as error:
        if error.fit is None:
            raise errors.CommandError(str(error), errors.FAILED) from error
        return error.fit, str(error)
    except (ValueError, TypeError) as error:
        model = model_of(spec)
        if error.__cause__ is None or model is None:
            raise
        # Say where in the user's own file it broke: our lines are of no use to them.
        raise errors.CommandError(f"{line_of(error.__cause__, model)}: {error}") from error


def _judge(seed: int, done: "Fit", target: "Target") -> dict[str, dict[str, Any]]:
    """Judge the sampler, unless Ctrl-C has said that nobody wants to wait, or the target cannot be asked."""
    if not (done.outcome.good or done.outcome.name in ("DIVERGED", "INACCURATE")):
        return {}
    import jax

    from pushforward.programs import came_from_running
    from pushforward.runs.judging import judge

    try:
        # Any key but those that trained it will do.
        return judge(jax.random.fold_in(jax.random.key(seed), 2**31), done.sampler, target)
    except KeyboardInterrupt:
        why = "interrupted while judging the sampler"
    except (RuntimeError, ValueError) as error:
        if not came_from_running(error):
            raise
        # A log density that raises: hours of training are not to be lost to that.
        why = f"the sampler could not be judged ({str(error).splitlines()[0]})"
    note(f"{why}; it is written without these figures.")
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
    times = ", ".join(f"{phase['phase']} {phase['seconds']:.1f} s" for phase in done.phases)
    rows = [
        ("outcome", f"{done.outcome.name.lower()}: {done.outcome.value}"),
        ("time", f"{done.seconds:.1f} s  ({times})"),
        *((name, in_words(metric)) for name, metric in metrics.items()),
        ("written", f"{clean(folder)}  (sampler.pf, run.json, history.jsonl)"),
    ]
    stdout().print(pairs(rows))
    place = shlex.quote(str(folder))
    sample = f"pushforward sample {place} -n 1000000 --out draws.npy"
    line = sample if done.outcome.good else f"pushforward check {place}"
    stdout().print(Text.assemble("\nNext: ", (line, "bold")), soft_wrap=True)
