"""What a file of draws holds, whatever its format: the same for every writer and every reader."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pushforward.container import BadFileError
from pushforward.parameters import Parameters

FORMAT, VERSION = "pushforward-draws", 1


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

    def check(self) -> None:
        """Refuse arrays that cannot be draws of one set."""
        arrays = {**self.values, **self.stats}
        if self.coordinates is not None:
            arrays["coordinates"] = self.coordinates
        if not self.values:
            raise BadFileError("it holds no arrays.")
        for name, array in arrays.items():
            if array.ndim < 1 or array.dtype.kind not in "fiub":
                raise BadFileError(f"{name!r} must be an array of numbers with draws along its first axis.")
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1 or min(lengths.values()) < 1:
            raise BadFileError(f"its arrays must hold the same number of draws, at least one; got {lengths}.")
        if self.parameters is None:
            return
        if words := self.misfit(self.parameters):
            raise BadFileError(f"its record{words}.")
        if any(self.values[item.name].dtype.kind != "f" for item in self.parameters.items):
            raise BadFileError("its parameters must be floating-point numbers.")
        if self.coordinates is not None and self.coordinates.shape[1:] != (self.parameters.dim,):
            raise BadFileError(f"its coordinates must be {self.parameters.dim} a draw.")


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
