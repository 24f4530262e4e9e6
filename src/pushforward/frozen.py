"""What all records of a recipe share: frozen, changed by name, told as plain values, known by a digest."""

import dataclasses
import difflib
import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

R = TypeVar("R", bound="Record")


class Record:
    """A frozen dataclass; a record of records reaches inner fields by dotted names."""

    def replace(self: R, **changes: Any) -> R:
        """Return a copy with some fields changed; an unknown name is an error.

        A field of an inner record is named by its path, `replace(**{"annealing.num_particles": 4096})`, and a
        dictionary changes some fields of one: `replace(annealing={"num_particles": 4096})`.
        """
        known = self.names()
        mine: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            path = self.path_of(name)
            if path not in known:
                raise ValueError(self._unknown(name))
            head, _, rest = path.partition(".")
            if rest:
                inner.setdefault(head, {})[rest] = value
            elif isinstance(value, Mapping) and isinstance(getattr(self, head), Record):
                inner.setdefault(head, {}).update(value)
            else:
                mine[head] = value
        for head, few in inner.items():
            mine[head] = mine.get(head, getattr(self, head)).replace(**few)
        return dataclasses.replace(self, **mine)  # pyright: ignore[reportArgumentType]

    def path_of(self, name: str) -> str:
        """Return the full path of a field's name; a record with a short form for some says so here."""
        return name

    def names(self) -> list[str]:
        """Return the names of all fields, those of inner records by their paths."""
        found = []
        for each in dataclasses.fields(self):  # pyright: ignore[reportArgumentType]
            value = getattr(self, each.name)
            found.append(each.name)
            if isinstance(value, Record):
                found += [f"{each.name}.{inner}" for inner in value.names()]
        return found

    def _unknown(self, name: str) -> str:
        """Return what to say of a name that is none: the nearest, by its last part as well as by its path."""
        known = self.names()
        short = [path.rpartition(".")[2] for path in known]
        said = dict(zip(short, known, strict=True)) | {path: path for path in known}
        said |= {each: each for each in short if self.path_of(each) in known}
        near = difflib.get_close_matches(name, said, n=1)
        hint = f" Did you mean {said[near[0]]!r}?" if near else ""
        choices = ", ".join(sorted(each for each, path in said.items() if each == path and "." not in each))
        return f"`setting` must be one of {choices}; got {name!r}.{hint}"

    def plain(self) -> dict[str, Any]:
        """Return JSON values, which tell all that the record holds."""
        found = {}
        for each in dataclasses.fields(self):  # pyright: ignore[reportArgumentType]
            value = plain(getattr(self, each.name))
            # One and 1.0 are equal, and must read the same.
            real = each.type in (float, float | None) and type(value) is int
            found[each.name] = float(value) if real else value
        return found

    def digest(self) -> str:
        """Return a few digits that differ where anything in the record differs."""
        text = json.dumps(self.plain(), sort_keys=True)
        return short_hash(text.encode())

    def changes(self, base: "Record") -> dict[str, Any]:
        """Return the fields in which this record differs from another of its kind, by their paths."""
        found = {}
        for each in dataclasses.fields(self):  # pyright: ignore[reportArgumentType]
            mine, theirs = getattr(self, each.name), getattr(base, each.name)
            if isinstance(mine, Record) and isinstance(theirs, Record):
                found |= {f"{each.name}.{name}": value for name, value in mine.changes(theirs).items()}
            elif plain(mine) != plain(theirs):
                found[each.name] = mine
        return found


def plain(value: Any) -> Any:
    """Return a JSON value for what a record may hold: a part given as an instance by its class and fields."""
    if isinstance(value, Record):
        return value.plain()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return {"class": _name(type(value)), **fields}
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        array = np.ascontiguousarray(value)
        return {"array": [*array.shape], "sha256": short_hash(array.tobytes())}
    return _name(value if hasattr(value, "__qualname__") else type(value))


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def short_hash(content: bytes) -> str:
    """Return twelve hexadecimal digits: enough to tell recipes apart, few enough to read."""
    return hashlib.sha256(content).hexdigest()[:12]
