"""`pushforward study`: run one of the experiments, or what is left of it."""

import shlex
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from pushforward.checks import check_choice
from pushforward.cli.console import note, stdout
from pushforward.cli.errors import INTERRUPTED, CommandError

STUDIES = {
    "two-d": "two_d",
    "theory": "theory",
    "matchings": "matchings",
    "trust": "trust",
    "covertype": "covertype",
    "hard": "hard",
    "models": "models",
    "ebm": "ebm",
}
"""By name: the package under `studies` with its `PRESETS`, `plan` and `run`."""


def study(
    name: Annotated[str, typer.Argument(metavar="STUDY", help=", ".join(STUDIES))],
    preset: Annotated[str, typer.Option(help="smoke (seconds), cpu (hours), paper (a GPU).")] = "cpu",
    out: Annotated[Path, typer.Option(help="Folder for the records.")] = Path("results"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin again, whatever is there.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Run the rows asked for anew.")] = False,
    targets: Annotated[str, typer.Option(help="Only these targets, with commas between.")] = "",
    methods: Annotated[str, typer.Option(help="Only these methods, with commas between.")] = "",
    steps: Annotated[int, typer.Option(help="Cut every training short; 0 for no cut.")] = 0,
    data: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where a study's data are, if it needs any.")
    ] = "",
    stage: Annotated[str, typer.Option(help="Only these stages, with commas between, of ebm.")] = "",
    plan: Annotated[bool, typer.Option("--plan", help="Count rows and parameters; run nothing.")] = False,
) -> None:
    """Run a study row by row; rows already recorded are skipped, so it may be stopped at any time.

    [bold]Examples[/bold]

      pushforward study two-d --preset cpu --out results/

      pushforward study two-d --preset paper --targets gaussian --methods kl --steps 3 --out tried
    """
    chosen_study = import_module(f"reproduce.studies.{STUDIES[check_choice(name, 'STUDY', STUDIES)]}")
    settings = chosen_study.PRESETS[check_choice(preset, "--preset", chosen_study.PRESETS)]
    if again and not hasattr(settings, "methods"):
        raise CommandError(f"`--again` is for studies with rows; {name} has stages and their checkpoints.")
    asked = {"targets": targets, "methods": methods, "steps": str(steps or ""), "stage": stage, "data": data}
    settings = _changed(name, settings, {option: value for option, value in asked.items() if value})
    if plan:
        for line in chosen_study.plan(settings):
            stdout().print(line, markup=False, soft_wrap=True)
        return
    # The folder is this machine's: whoever runs the command again has another.
    chosen = {"preset": preset, **asked, "data": "FOLDER" if data else ""}
    options = [f"--{option} {shlex.quote(value)}" for option, value in chosen.items() if value]
    command = " ".join(["pushforward study", name, *options])
    try:
        path = chosen_study.run(
            settings, out, fresh=fresh, **({"again": True} if again else {}), command=command, observe=note
        )
    except KeyboardInterrupt:
        raise CommandError(
            f"interrupted; the rows done so far are in {out}. The same command does the rest.", INTERRUPTED
        ) from None
    note(f"Next: pushforward report {out} --out docs")
    stdout().print(str(path), markup=False, soft_wrap=True)


_FIELDS = {"steps": "max_steps", "stage": "stages"}
_UNKNOWN = {
    "targets": "`--targets` and `--methods` are not for {name}, which has stages: --stage.",
    "methods": "`--targets` and `--methods` are not for {name}, which has stages: --stage.",
    "data": "`--data` is for studies that read data; {name} makes its own.",
    "stage": "`--stage` is for studies in stages; {name} has none.",
}


def _changed(name: str, settings: Any, asked: dict[str, str]) -> Any:
    """Return the study's settings with what was asked for; refuse what the study does not have."""
    for option, words in asked.items():
        field = _FIELDS.get(option, option)
        if not hasattr(settings, field):
            raise CommandError(_UNKNOWN[option].format(name=name))
        plain = {"steps": int, "data": str}.get(option, lambda words: tuple(words.split(",")))
        settings = settings.replace(**{field: plain(words)})
    return settings
