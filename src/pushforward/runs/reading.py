"""What a run's folder says is treated as a stranger's: JSON of a known shape and size, or an error."""

import itertools
import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushforward.container import SAMPLER, BadFileError, check_json, read_lines

if TYPE_CHECKING:
    from pushforward.sampler import Sampler

ABOUT, HISTORY = "run.json", "history.jsonl"
MODEL = "model.py"
"""A copy of the user's own file, where the target came from one: a run can be made again from its folder."""

FORMAT, VERSION = "pushforward-run", 1

MAX_BYTES, MAX_ROWS = 2**20, 2**16
"""No honest `run.json` is larger and no honest history longer; a stranger's shall not fill the memory."""

Row = dict[str, int | float | None]
"""One line of history; a figure that was not finite is `None`, as strict JSON has it."""

_FIELDS: dict[str, type] = {
    "target": dict, "method": str, "settings": dict, "changed": dict, "seed": int, "command": str,
    "versions": dict, "cores": int, "outcome": str, "message": str, "phases": list, "rows": int,
    "metrics": dict,
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What a folder holds."""

    folder: Path
    about: dict[str, Any]
    """The contents of `run.json`: target, method, settings, seed, versions, outcome, phases, metrics."""
    history: list[Row]
    """Rows of the training loop."""

    @property
    def command(self) -> str:
        """What to type to make the run again; a user's own target comes from the copy in the folder."""
        command, spec = self.about["command"], self.about["target"]["spec"]
        model = self.folder / MODEL
        if not model.is_file() or ":" not in spec:
            return command
        return command.replace(shlex.quote(spec), shlex.quote(f"{model}:{spec.rpartition(':')[2]}"), 1)

    def sampler(self) -> "Sampler":
        """Load the sampler."""
        from pushforward.sampler import load

        return load(self.folder / SAMPLER)


def load_run(folder: str | os.PathLike) -> Run:
    """Read a run's folder, or raise one `BadFileError` that says what is wrong with it."""
    folder = Path(folder)
    if not folder.exists():
        raise FileNotFoundError(f"`folder` must name a run; there is no {folder}.")
    for name in (ABOUT, SAMPLER, HISTORY):
        if not (folder / name).is_file():
            raise BadFileError(f"{folder} is not a run: it has no {name}. Runs come from `pushforward fit`.")
    about = read_object(folder / ABOUT, MAX_BYTES, "a run", FORMAT, VERSION)
    _check_about(about, str(folder / ABOUT))
    path, rows = folder / HISTORY, about["rows"]
    if not 0 <= rows <= MAX_ROWS:
        raise BadFileError(f"{path} must hold at most {MAX_ROWS:,} rows; {ABOUT} says {rows}.")
    # One more than there should be tells a history that goes on from one that ends.
    lines = itertools.islice(read_lines(path), rows + 1)
    history = [_row(line, f"{path}, line {number}") for number, line in lines]
    if len(history) > rows:
        raise BadFileError(f"{path} is longer than the {rows} rows that {ABOUT} says it holds.")
    if len(history) < rows:
        raise BadFileError(f"{path} is truncated: it must hold {rows} rows; it holds {len(history)}.")
    return Run(folder, about, history)


def read_object(path: Path, most: int, kind: str, mark: str, version: int) -> dict[str, Any]:
    """Read a JSON object of at most so many bytes, with the mark and the version of its kind."""
    if (size := path.stat().st_size) > most:
        raise BadFileError(f"{path} must hold at most {most:,} bytes; it holds {size:,}.")
    about = _parse(path.read_bytes(), str(path))
    if not isinstance(about, dict) or about.get("format") != mark:
        raise BadFileError(f"{path} does not describe {kind}: it lacks the mark {mark!r}.")
    if (found := about.get("version")) != version:
        raise BadFileError(f"{path} has version {found!r}; this release reads version {version}.")
    return about


def _parse(text: str | bytes, place: str) -> Any:
    try:
        # Decoded here, since JSON would guess among encodings.
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(check_json(text), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadFileError(f"{place} is corrupted: this is not JSON ({error}).") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is written as null")


def _check_about(about: dict[str, Any], place: str) -> None:
    for name, kind in _FIELDS.items():
        _check(about.get(name), kind, name, place)
    for name, kind in (("spec", str), ("name", str), ("dim", int)):
        _check(about["target"].get(name), kind, f"target.{name}", place)
    for phase in about["phases"]:
        _check(phase, dict, "phases", place)
        _check(phase.get("phase"), str, "phases.phase", place)
        _check_number(phase.get("seconds"), "phases.seconds", place)
    for name, metric in about["metrics"].items():
        _check(metric, dict, f"metrics.{name}", place)
        for value in metric.values():
            _check_number(value, f"metrics.{name}", place)


def _row(line: str, place: str) -> Row:
    row = _parse(line, place)
    _check(row, dict, "a line", place)
    for name, value in row.items():
        _check_number(value, name, place)
    return row


def _check(value: Any, kind: type, name: str, place: str) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise BadFileError(
            f"{place} does not describe a run: {name!r} must be {kind.__name__}; got {type(value).__name__}."
        )


def _check_number(value: Any, name: str, place: str) -> None:
    # JSON allows 1e999, which is read as infinity.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and abs(value) < 1e300):
        raise BadFileError(f"{place} does not describe a run: {name!r} must be a finite number or null.")
