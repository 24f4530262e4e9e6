"""`pushforward show`: what a run or a saved sampler is, and how its training went."""

import json
import math
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from pushforward.cli import options
from pushforward.cli.console import clean, in_words, number, pairs, size, spark, stdout
from pushforward.cli.errors import CommandError

NUM_ROWS = 8  # rows of history shown, evenly spaced, with the last always among them

SHOWN = {"objective": "loss", "score_loss": "score loss", "ksd_imq_v": "KSD", "skipped": "skipped"}

MAX_DRAWS = 2**31  # bytes of the largest file of draws that is summarised: all of it is read


def show(source: options.SourceOrDraws, as_json: options.Json = False) -> None:
    """Show what a run, a saved sampler or a file of draws holds.

    Of a run: target, settings, outcome, figures and history. Of draws: their names and shapes, and mean, sd
    and quantiles of each number.

    [bold]Examples[/bold]
      pushforward show runs/rosenbrock
      pushforward show runs/rosenbrock --json | jq .metrics
      pushforward show draws.npy
    """
    from pushforward.draws.files import FORMATS

    if source.suffix in FORMATS and source.is_file():
        _show_draws(source, as_json=as_json)
        return
    about, history, more = _read(source)
    if as_json:
        typer.echo(json.dumps(about, indent=2))
        return
    console = stdout()
    console.print(pairs(_summary(about, more)))
    if history:
        curves = _curves(history, ascii_only=console.options.ascii_only)
        console.print("", curves, "", _table(history), sep="\n")


def _show_draws(source: Path, *, as_json: bool) -> None:
    from pushforward.draws import load_draws
    from pushforward.runs.writing import finite

    num_bytes = source.stat().st_size
    if num_bytes > MAX_DRAWS:
        raise CommandError(
            f"{source} must hold at most {size(MAX_DRAWS)} of draws to be summarised; it holds "
            f"{size(num_bytes)}. `numpy.load(path, mmap_mode='r')` reads parts of a .npy file."
        )
    draws = load_draws(source)
    summary = draws.summary()
    if as_json:
        figures = {name: finite(row) for name, row in summary.items()}
        typer.echo(json.dumps({"draws": len(draws), "summary": figures}, indent=2))
        return
    console = stdout()
    console.print(Text(clean(f"{source}: {draws}, {size(num_bytes)}", 1000)))
    console.print()
    # Line by line: what a file calls its columns must not steer the terminal.
    console.print(Text("\n".join(clean(line, 1000) for line in str(summary).split("\n"))), soft_wrap=True)


def _read(source: Path) -> tuple[dict[str, Any], list[dict[str, Any]], list[tuple[str, str]]]:
    """Return what a run or a sampler tells of itself, its history, and what its map is."""
    if source.is_dir():
        from pushforward.runs import load_run

        run = load_run(source)
        return {**run.about, "command": run.command}, run.history, []
    from pushforward.sampler import load

    sampler = load(source)
    latent, network = type(sampler.latent).__name__, type(sampler.network).__name__
    return sampler.about, [], [("map", f"{latent}({sampler.latent.dim}) -> {network} -> {sampler.dim}")]


def _summary(about: dict[str, Any], more: list[tuple[str, str]]) -> list[tuple[str, str]]:
    target = about.get("target")
    if isinstance(target, dict):
        name, dim, spec = (clean(target.get(each)) for each in ("name", "dim", "spec"))
        target = f"{name}, {dim} coordinates  ({spec})"
    changes = [f"{clean(name)}={clean(value)}" for name, value in _dict(about.get("changed")).items()]
    message = f": {clean(about['message'], 1000)}" if about.get("message") else ""
    rows = [
        ("target", clean(target)),
        ("method", clean(about.get("method"))),
        *more,
        ("recipe", clean(about.get("digest", "of an earlier version, without a digest"))),
        ("changed settings", ", ".join(changes) or "none"),
        ("outcome", clean(about.get("outcome")).lower() + message),
    ]
    phases = about.get("phases")
    for phase in map(_dict, phases if isinstance(phases, list) else ()):
        told = {name: value for name, value in phase.items() if name not in ("phase", "seconds", "outcome")}
        details = [f"{clean(n)} {number(v)}" for n, v in told.items() if not isinstance(v, list | dict)]
        rows.append((clean(phase.get("phase")), "  ".join([f"{number(phase.get('seconds'))} s", *details])))
    rows += [(clean(name), in_words(metric)) for name, metric in _dict(about.get("metrics")).items()]
    return rows + [(name, clean(about[name], 1000)) for name in ("seed", "command") if name in about]


def _dict(value: Any) -> dict[str, Any]:
    """Return a mapping as it is and anything else as an empty one: a saved sampler may say what it likes."""
    return value if isinstance(value, dict) else {}


def _curves(history: list[dict[str, Any]], *, ascii_only: bool) -> Table:
    """Return one small curve per figure, each on its own scale; the KSD's is logarithmic."""
    rows = []
    for name, label in SHOWN.items():
        values = [row[name] for row in history if row.get(name) is not None]
        if not values or (name == "skipped" and not any(values)):
            continue
        log = name == "ksd_imq_v" and min(values) > 0
        line = spark([math.log(v) if log else v for v in values], ascii_only=ascii_only)
        rows.append((label, f"{line}  {number(float(values[0]))} to {number(float(values[-1]))}"))
    return pairs(rows)


def _table(history: list[dict[str, Any]]) -> Table:
    count = min(NUM_ROWS, len(history))
    chosen = [history[math.ceil((i + 1) * len(history) / count) - 1] for i in range(count)]
    names = [name for name in SHOWN if any(name in row for row in history)]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("step", "seconds", *(SHOWN[name] for name in names)):
        table.add_column(title, justify="right")
    for row in chosen:
        cells = [row.get("step"), row.get("seconds"), *(row.get(name) for name in names)]
        table.add_row(*(Text(number(cell)) for cell in cells))
    return table
