"""What a study leaves behind: one header, then one record per figure, as lines of strict JSON.

The report reads these files and nothing else, so this module imports no JAX, and a file that
does not hold exactly what is written here is refused with its name and line.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, no_type_check

from pushforward.atomic import write_atomically
from pushforward.container import BadFileError, read_lines, regular
from pushforward.machine import cores, versions
from reproduce.origin import commit, host, today

LATER = ("recipe", "date", "commit", "host")  # fields that files of version 0.1 do not have


# Both classes check and convert their own fields, as users will meet them; the type hook of the
# tests, to which the integer 3 is no float, would only come in between.
@no_type_check
@dataclass(frozen=True)
class Record:
    """One figure: what `metric` said of `method` on `target`, and under which protocol.

    JSON has no NaN and no infinity. A `value` that is not finite means that the method broke
    down: it is kept as NaN here and written as `null`. For `spread` and `floor`, which need not
    exist, anything not finite becomes `None`, and `null` on disk.

    **Arguments:**

    - `study`, `preset`, `method`, `target`, `metric`: names.
    - `value`: the figure; a mean, where `repeats` is above one.
    - `spread`: the standard deviation over the repeats.
    - `n`: how many draws went into each repeat.
    - `repeats`: how many independent repeats.
    - `seed`: the seed of this figure's own key.
    - `floor`: what an exact sampler scores under the very same protocol, where one exists.
    - `recipe`: the digest of the recipe that was asked for, where the figure is of a fit.
    """

    study: str
    preset: str
    method: str
    target: str
    metric: str
    value: float
    spread: float | None = None
    n: int | None = None
    repeats: int | None = None
    seed: int | None = None
    floor: float | None = None
    recipe: str | None = None

    def __post_init__(self) -> None:
        _check_names(self, ("study", "preset", "method", "target", "metric"), ("recipe",))
        value = math.nan if self.value is None else _number(self.value, "value")
        # One and the same NaN object, so that a record equals itself after a round trip.
        object.__setattr__(self, "value", value if math.isfinite(value) else math.nan)
        for name in ("spread", "floor"):
            value = getattr(self, name)
            if value is not None:
                value = _number(value, name)
                object.__setattr__(self, name, value if math.isfinite(value) else None)
        for name, least in (("n", 1), ("repeats", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _count(value, name, at_least=least))

    def as_json(self) -> dict[str, Any]:
        """Return the fields as strict JSON can hold them."""
        return {**asdict(self), "value": self.value if math.isfinite(self.value) else None}


@no_type_check
@dataclass(frozen=True)
class Header:
    """Where a file of records comes from: enough to run it again.

    **Arguments:**

    - `study`, `preset`, `seed`, `command`: what was run.
    - `versions`, `commit`: of which code.
    - `cores`, `host`: on what kind of machine.
    - `date`: on which day it was begun.
    - `recipe`: the digest of the recipe that a fit follows which is asked for nothing.
    """

    study: str
    preset: str
    seed: int
    command: str
    versions: dict[str, str]
    cores: int
    recipe: str | None = None
    date: str | None = None
    commit: str | None = None
    host: str | None = None

    def __post_init__(self) -> None:
        _check_names(self, ("study", "preset", "command"), LATER)
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,80}", self.study):
            raise ValueError(f"`study` names files: letters, digits, - and _; got {self.study!r}.")
        object.__setattr__(self, "seed", _count(self.seed, "seed", at_least=0))
        object.__setattr__(self, "cores", _count(self.cores, "cores", at_least=1))
        named = isinstance(self.versions, dict) and all(
            isinstance(name, str) and isinstance(version, str) for name, version in self.versions.items()
        )
        if not named:
            raise ValueError(f"`versions` must map library names to version strings; got {self.versions!r}.")

    @classmethod
    def of_this_machine(
        cls, study: str, preset: str, seed: int, command: str, recipe: Any = None
    ) -> "Header":
        """Fill in the installed versions, the commit, the day, the machine, and the digest of the recipe."""
        if recipe is None:
            from pushforward import methods

            recipe = methods.METHODS["default"].recipe
        place = (versions(), cores(), recipe.digest(), today(), commit(), host())
        return cls(study, preset, seed, command, *place)

    def as_json(self) -> dict[str, Any]:
        """Return the fields with the mark that tells a header from a record."""
        return {"kind": "header", **asdict(self)}


def of_recipe(recipe: Any, records: Iterable[Record]) -> list[Record]:
    """Return the figures of a fit with the digest of the recipe that was asked for."""
    return [replace(record, recipe=recipe.digest()) for record in records]


def write(path: str | Path, header: Header, records: Iterable[Record] = ()) -> None:
    """Write a new file of records, replacing an old one only once the new one is complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _lines([header, *records]).encode())


def mend(path: str | Path) -> None:
    """Take away a last line that a kill tore in two; until the rest is written anew, nothing is lost."""
    data = Path(path).read_bytes()
    if not data.endswith(b"\n"):
        write_atomically(path, data[: data.rfind(b"\n") + 1])


def append(path: str | Path, records: Record | Iterable[Record]) -> None:
    """Add records to a file begun by `write`; call it as often as there is something to add.

    The lines go out in one call on a file opened for appending, so that processes which share a
    file do not tear each other's lines, and what was there before is never rewritten.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"{path}: there is no such file. Begin it with `write(path, header)`.")
    lines = _lines([records] if isinstance(records, Record) else records)
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
        if file.read(1) != b"\n":
            raise ValueError(
                f"{path}: the last line is incomplete, as after a kill. Call `records.mend(path)`."
            )
        file.write(lines.encode("utf-8"))


def read(path: str | Path) -> tuple[Header, list[Record]]:
    """Read a file of records, or raise one `BadFileError` that names the file and the line."""
    lines = read_lines(regular(path, "a file of records"))
    number, first = next(lines, (0, ""))
    if not number:
        raise BadFileError(f"{path}, line 1: expected a header; the file is empty.")
    header = _parse(first, f"{path}, line 1", Header)
    return header, [_parse(line, f"{path}, line {number}", Record) for number, line in lines]


def _parse(line: str, place: str, kind: Callable[..., Any]) -> Any:
    try:
        data = json.loads(line, parse_constant=_refuse_constant, object_pairs_hook=_unique)
        if not isinstance(data, dict):
            raise TypeError(f"expected a JSON object; got {type(data).__name__}.")
        _check_kind(data.pop("kind", "record"), "header" if kind is Header else "record")
        expected = {field.name for field in fields(kind)}  # pyright: ignore[reportArgumentType]
        if missing := expected - data.keys() - {*LATER}:
            raise ValueError(f"missing {', '.join(sorted(missing))}.")
        if unknown := data.keys() - expected:
            raise ValueError(f"unknown {', '.join(sorted(unknown))}.")
        return kind(**data)
    except json.JSONDecodeError as error:
        raise BadFileError(f"{place}: this is not JSON ({error}).") from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadFileError(f"{place}: {error}") from error


def _lines(items: Iterable[Header | Record]) -> str:
    return "".join(json.dumps(item.as_json(), allow_nan=False) + "\n" for item in items)


def _check_kind(kind: Any, expected: str) -> None:
    if kind != expected:
        hint = " A file has one header, on its first line." if "header" in (kind, expected) else ""
        raise ValueError(f"expected a {expected}; got kind {kind!r}.{hint}")


def _check_names(held: Any, names: Iterable[str], optional: Iterable[str]) -> None:
    for name in (*names, *(each for each in optional if getattr(held, each) is not None)):
        value = getattr(held, name)
        # Half a surrogate pair is text that nothing can print or write.
        if not isinstance(value, str) or not value or any("\ud800" <= each <= "\udfff" for each in value):
            raise ValueError(f"`{name}` must be a name; got {value!r}.")


def _number(value: Any, name: str) -> float:
    # `float("0.1")` would let text through; scalars of NumPy and JAX are welcome.
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise ValueError(f"`{name}` must be a number; got {value!r}.")
    return float(value)


def _count(value: Any, name: str, *, at_least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < at_least:
        raise ValueError(f"`{name}` must be an integer of at least {at_least}; got {value!r}.")
    return int(value.__index__())


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON; a figure that is not finite is written as null.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{', '.join(twice)} appears twice.")
    return dict(pairs)
