"""A run's folder is written whole or not at all, and never over another."""

import itertools
import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushforward.atomic import new_folder, write_atomically
from pushforward.checks import check_count
from pushforward.container import SAMPLER
from pushforward.machine import cores, versions
from pushforward.runs.reading import ABOUT, FORMAT, HISTORY, MODEL, VERSION, Row

if TYPE_CHECKING:
    # Checking a folder must not cost the import of everything that can train a sampler.
    from pushforward.run.fit import Fit


def check_folder(folder: str | os.PathLike, argument: str = "folder") -> Path:
    """Return `folder` if a run can be written there: it does not exist or is empty, and is ours to make."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`{argument}` must be a new folder; {folder} is a file. Choose another name.")
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(
            f"`{argument}` must be new or empty, since nothing is ever overwritten; {folder} is not. "
            "Choose another name or remove it."
        )
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        # Asking the disk is the only honest test of whether it can be written.
        tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=".").cleanup()
    except OSError as error:
        raise ValueError(
            f"`{argument}` must be where this user can write; {folder}: {error.strerror}."
        ) from error
    return folder


def save_run(
    folder: str | os.PathLike,
    fit: "Fit",
    *,
    target: Mapping[str, Any],
    seed: int,
    command: str,
    message: str = "",
    metrics: Mapping[str, Mapping[str, Any]] | None = None,
    model: str | os.PathLike | None = None,
) -> Path:
    """Write a run's folder and return where it is.

    It appears when it is whole. Should the name have been taken meanwhile, the run gets the next free one: an
    hour of training is not to be lost to that.

    **Arguments:**

    - `folder`: must not exist, or be empty.
    - `target`: `spec` (what was typed), `name`, `dim`.
    - `message`: the outcome in words; that of the outcome itself otherwise, and why it is so if it says.
    - `metrics`: name to `{"value", "spread", "n", "repeats", "floor"}`, beside what training itself found.
    - `model`: the user's own file that the target came from; a copy is kept with the run.
    """
    folder = Path(folder)
    story = fit.sampler.about
    found = {name: {"value": value} for name, value in story["metrics"].items()}
    about = {
        "format": FORMAT,
        "version": VERSION,
        "target": dict(target),
        **{name: story[name] for name in ("method", "settings", "changed", "digest")},
        "recipe": fit.recipe.plain(),
        "seed": check_count(seed, "seed", at_least=0),
        "command": command,
        "versions": versions(),
        "cores": cores(),
        "outcome": fit.outcome.name,
        "message": message or ": ".join(filter(None, (fit.outcome.value, story.get("why", "")))),
        "phases": story["phases"],
        # How long the history is: one that was cut at the end of a line would look whole.
        "rows": len(fit.history),
        "metrics": {**found, **{name: finite(row) for name, row in (metrics or {}).items()}},
    }
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(finite(row), allow_nan=False) + "\n" for row in fit.history)
    with new_folder(folder) as beside:
        fit.sampler.save(beside / SAMPLER)
        write_atomically(beside / ABOUT, (json.dumps(about, indent=2, allow_nan=False) + "\n").encode())
        write_atomically(beside / HISTORY, lines.encode())
        if model is not None:
            shutil.copyfile(model, beside / MODEL)
        try:
            os.rename(beside, folder)
        except OSError:
            folder = free_name(folder)
            os.rename(beside, folder)
    return folder


def free_name(folder: str | os.PathLike) -> Path:
    """Return `folder`, or the first of `folder-2`, `folder-3`, ... that does not exist."""
    folder = Path(folder)
    names = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    return next(free for free in itertools.chain([folder], names) if not free.exists())


def finite(row: Mapping[str, Any]) -> Row:
    """Return a row as strict JSON can hold it."""
    return {n: v if v is not None and math.isfinite(v) else None for n, v in row.items()}
