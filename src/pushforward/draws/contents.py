"""What a file of draws holds, whatever its format: the same for every writer and every reader."""

import json
from typing import Any, NamedTuple

import numpy as np

from pushforward.container import BadFileError
from pushforward.parameters import Parameters

FORMAT, VERSION = "pushforward-draws", 1


class Contents(NamedTuple):
    """Named arrays with the draws along their first axis, and what is known of them."""

    values: dict[str, np.ndarray]
    coordinates: np.ndarray | None
    stats: dict[str, np.ndarray]
    parameters: Parameters | None
    about: dict[str, Any]

    def words(self) -> str:
        """Return all but the arrays, as JSON."""
        shapes = {name: value.shape[1:] for name, value in self.values.items()}
        record = None if self.parameters is None else self.parameters.to_json()
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "shapes": shapes,
                "parameters": record,
                "about": self.about,
            }
        )

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
        for item in self.parameters.items:
            if item.name not in self.values or self.values[item.name].shape[1:] != item.shape:
                raise BadFileError(f"its array {item.name!r} is missing or not of shape {item.shape} a draw.")
            if self.values[item.name].dtype.kind != "f":
                raise BadFileError(f"its array {item.name!r} must be of floating-point numbers.")
        if self.coordinates is not None and self.coordinates.shape != (
            len(self.coordinates), self.parameters.dim,
        ):  # fmt: skip
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
