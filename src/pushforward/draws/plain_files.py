"""NumPy's own formats."""

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pushforward import arrays
from pushforward.container import BadFileError
from pushforward.draws.contents import Contents, read_words, with_prefix
from pushforward.parameters import Parameters

WORDS, COORDINATES, STATS = "_about", "_unconstrained", "_stats."
"""Members of an archive that are not values; a name of the user's cannot be one of them."""

TAKEN = (WORDS, COORDINATES, "file", "allow_pickle")
"""The last two are arguments of NumPy's, which takes names by keyword."""


def write_npz(file: BinaryIO, contents: Contents) -> None:
    """Write one array a name; the free coordinates too, unless they are the values themselves."""
    taken = [n for n in contents.values if n in TAKEN or n.startswith(STATS)]
    if taken:
        raise ValueError(f"a parameter named {taken[0]!r} cannot be written to .npz; rename it.")
    members = {**contents.values, **{STATS + name: stat for name, stat in contents.stats.items()}}
    members[WORDS] = np.frombuffer(contents.words().encode(), np.uint8)
    if contents.coordinates is not None and not _are_values(contents.parameters):
        members[COORDINATES] = contents.coordinates
    np.savez(file, allow_pickle=False, **members)


def read_npz(path: Path) -> Contents:
    """Read an archive of ours, or of anyone's whose arrays have the draws along their first axis."""
    found = arrays.read_npz(path)
    words = found.pop(WORDS, None)
    if words is None:
        # `pushforward sample` of a sampler without names writes one array, `draws`.
        alone = set(found) == {"draws"} and found["draws"].ndim == 2
        return unnamed(found["draws"]) if alone else Contents(found)
    _, parameters, about = read_words(bytes(words.astype(np.uint8)).decode())
    coordinates, stats = found.pop(COORDINATES, None), with_prefix(found, STATS)
    return Contents(found, coordinates, stats, parameters, about)


def write_npy(file: BinaryIO, contents: Contents) -> None:
    """Write `x` as it is, and named draws as a structured array: `np.load(path)["theta"]`."""
    rows = contents.values["x"] if are_coordinates(contents) else structured(contents.values)
    arrays.write_npy_header(file, rows.dtype, rows.shape)
    file.write(np.ascontiguousarray(rows).view(np.uint8).data)


def structured(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return one array whose rows are draws and whose fields are names."""
    count = len(next(iter(values.values())))
    dtype = np.dtype([(name, value.dtype, value.shape[1:]) for name, value in values.items()])
    rows = np.empty(count, dtype)
    for name, value in values.items():
        rows[name] = value
    return rows


def read_npy(path: Path) -> Contents:
    """Read a plain array of shape `(n, dim)` or a structured one."""
    found = arrays.read_npy(path)
    if names := found.dtype.names:
        # Each of its own: the rows together go as soon as they are taken apart.
        return Contents({name: np.ascontiguousarray(found[name]) for name in names})
    return unnamed(found[:, None] if found.ndim == 1 else found)


def unnamed(draws: np.ndarray) -> Contents:
    """Return points of R^dim as what a file of draws without names holds."""
    if draws.ndim != 2 or draws.dtype.kind != "f":
        raise BadFileError(
            f"draws must be floating-point numbers of shape (n, dim); got {draws.dtype} of shape "
            f"{draws.shape}."
        )
    return Contents({"x": draws}, draws, parameters=Parameters.plain(draws.shape[1]))


def are_coordinates(contents: Contents) -> bool:
    """Whether the values are one array `x` of points in R^dim, as far as is known."""
    x = contents.values.get("x")
    known = contents.parameters is None or _are_values(contents.parameters)
    return len(contents.values) == 1 and x is not None and x.ndim == 2 and known


def _are_values(parameters: Parameters | None) -> bool:
    return parameters is not None and all(item.kind == "real" for item in parameters.items)
