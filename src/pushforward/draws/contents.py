"""What a file of draws holds, whatever its format: the same for every writer and every reader."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jax.dtypes import canonicalize_dtype

from pushforward.container import BadFileError
from pushforward.parameters import Parameters

FORMAT, VERSION = "pushforward-draws", 1

COLUMN = re.compile(r"(.+)\[([0-9]{1,9}(?:,[0-9]{1,9}){0,15})\]", re.DOTALL)


class Contents(NamedTuple):
    """Named arrays with the draws along their first axis, and what is known of them."""

    values: Mapping[str, np.ndarray]
    coordinates: np.ndarray | None = None
    stats: Mapping[str, np.ndarray] = {}
    parameters: Parameters | None = None
    about: Mapping[str, Any] = {}

    def words(self) -> str:
        """Return all but the arrays, as JSON."""
        shapes = {name: value.shape[1:] for name, value in self.values.items()}
        record = None if self.parameters is None else self.parameters.to_json()
        mark = {"format": FORMAT, "version": VERSION}
        return json.dumps({**mark, "shapes": shapes, "parameters": record, "about": self.about})

    def misfit(self, parameters: Parameters) -> str:
        """Return how the values are not those of the parameters; nothing if they are."""
        for item in parameters.items:
            if item.name not in self.values:
                names = ", ".join(self.values)
                return f" has a parameter {item.name!r} that the file has not; it holds {names}"
            found = self.values[item.name].shape[1:]
            if found != item.shape:
                return f": {item.name!r} must have shape {item.shape} for one draw; the file has {found}"
        return ""

    def checked(self) -> "Contents":
        """Return the same with numbers as this machine has them; refuse what cannot be draws of one set."""
        if not self.values:
            raise BadFileError("it holds no arrays.")
        values, stats = ({n: _numbers(n, y) for n, y in part.items()} for part in (self.values, self.stats))
        coordinates = None if self.coordinates is None else _numbers("coordinates", self.coordinates)
        arrays = [*values.items(), *stats.items(), *([] if coordinates is None else [("", coordinates)])]
        lengths = {name: len(array) for name, array in arrays}
        if len(set(lengths.values())) > 1:
            raise BadFileError(f"its arrays must hold the same number of draws; got {lengths}.")
        found = self._replace(values=values, stats=stats, coordinates=coordinates)
        if self.parameters is None:
            return found
        if words := self.misfit(self.parameters):
            raise BadFileError(f"its record{words}.")
        if any(values[item.name].dtype.kind != "f" for item in self.parameters.items):
            raise BadFileError("its parameters must be floating-point numbers.")
        if coordinates is not None and coordinates.shape[1:] != (self.parameters.dim,):
            raise BadFileError(f"its coordinates must be {self.parameters.dim} a draw.")
        return found


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim < 1 or array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise BadFileError(f"{name!r} must be an array of numbers with draws along its first axis.")
    if not array.size:
        raise BadFileError(f"{name!r} must hold at least one draw of at least one number.")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    # JAX would cut integers of 64 bits short without a word.
    if array.dtype.kind in "iu" and not np.array_equal(array, array.astype(canonicalize_dtype(array.dtype))):
        raise BadFileError(
            f"{name!r} holds integers of 64 bits, which JAX takes with `jax_enable_x64` alone."
        )
    return array


def read_words(text: str) -> tuple[dict[str, tuple[int, ...]], Parameters | None, dict[str, Any]]:
    """Return the shapes, parameters and story that `Contents.words` wrote."""
    body = json.loads(text)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise BadFileError(f"its words lack the mark {FORMAT!r}.")
    if body.get("version") != VERSION:
        raise BadFileError(f"it has version {body.get('version')!r}; this release reads version {VERSION}.")
    shapes = {str(name): tuple(int(n) for n in shape) for name, shape in body["shapes"].items()}
    record, about = body["parameters"], body["about"]
    if not isinstance(about, dict):
        raise BadFileError("its story is not a JSON object.")
    return shapes, None if record is None else Parameters.from_json(record), about


def with_prefix(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Take the arrays out whose names begin with the prefix, and return them without it."""
    return {name[len(prefix) :]: arrays.pop(name) for name in list(arrays) if name.startswith(prefix)}


def columns(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return one column for each number of a draw: `mu`, `theta[0]`, `L[1,0]`."""
    found = {}
    for name, value in values.items():
        for place in np.ndindex(*value.shape[1:]):
            label = f"{name}[{','.join(map(str, place))}]" if place else name
            found[label] = np.ascontiguousarray(value[(slice(None), *place)])
    return found


def gathered(found: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Put columns `theta[0]`, `theta[1]`, ... back together; what does not fill an array stays as it is."""
    groups: dict[str, dict[tuple[int, ...], str]] = {}
    for label in found:
        match = COLUMN.fullmatch(label)
        name, place = (match[1], tuple(map(int, match[2].split(",")))) if match else (label, ())
        groups.setdefault(name, {})[place] = label
    values = {}
    for name, places in groups.items():
        shape = shapes.get(name) or tuple(
            1 + max(p[axis] for p in places) for axis in range(len(min(places)))
        )
        if set(places) == {()}:
            values[name] = found[places[()]]
        elif len({len(p) for p in places}) == 1 and len(places) == np.prod(shape, dtype=object):
            stacked = np.stack([found[places[p]] for p in np.ndindex(*shape)], axis=1)
            values[name] = stacked.reshape(len(stacked), *shape)
        else:
            values |= {label: found[label] for label in places.values()}
    return values
