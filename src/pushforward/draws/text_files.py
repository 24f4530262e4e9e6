"""Draws as text: a line of names, then a line of numbers for each draw."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pushforward.container import BadFileError
from pushforward.draws.contents import Contents
from pushforward.draws.plain_files import are_coordinates, unnamed
from pushforward.draws.table_files import columns, gathered

MAX_LINE = 2**24
"""Bytes that the line of names may take."""


def coordinate_titles(dim: int) -> list[str]:
    """Return the titles of coordinates in R^dim: `x0`, `x1`, ... By them they are known when read again."""
    return [f"x{i}" for i in range(dim)]


def write_titles(file: BinaryIO, titles: Sequence[str]) -> None:
    """Write the line of names."""
    # A comma in a title, as in L[1,0], must not look like the end of it.
    quoted = ['"' + title.replace('"', '""') + '"' if {",", '"'} & {*title} else title for title in titles]
    file.write((",".join(quoted) + "\n").encode())


def write_rows(file: BinaryIO, block: np.ndarray) -> None:
    """Write a line a draw, with enough digits that reading gives back the very same number."""
    np.savetxt(file, block, fmt="%.9g" if block.dtype == np.float32 else "%.17g", delimiter=",")


def write_csv(file: BinaryIO, contents: Contents) -> None:
    """Write the values; figures of single draws, the story and the constraints have no place in it."""
    table = columns(contents.values)
    titles = coordinate_titles(len(table)) if are_coordinates(contents) else list(table)
    block = np.stack(list(table.values()), axis=1)
    write_titles(file, titles)
    write_rows(file, block if block.dtype == np.float32 else block.astype(np.float64))


def read_csv(path: Path) -> Contents:
    """Read a table of ours, or of anyone's whose columns have names and hold numbers."""
    with path.open("rb") as file:
        line = file.readline(MAX_LINE).decode("utf-8-sig")
        titles = next(csv.reader([line]), [])
        _check_titles(path, titles)
        start = file.tell()
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            raise BadFileError(f"{path} is truncated: its last line has no end. Write it again.")
        file.seek(start)
        with warnings.catch_warnings():
            # That there is no line of numbers is said below.
            warnings.simplefilter("ignore")
            numbers = np.loadtxt(file, np.float64, comments=None, delimiter=",", ndmin=2, encoding="utf-8")
    if not len(numbers) or numbers.shape[1] != len(titles):
        raise BadFileError(
            f"{path} must hold lines of {len(titles)} numbers, one for each name; their shape is "
            f"{numbers.shape}."
        )
    if titles == coordinate_titles(len(titles)):
        return unnamed(numbers)
    return Contents(gathered(dict(zip(titles, numbers.T, strict=True)), {}))


def _check_titles(path: Path, titles: list[str]) -> None:
    if not all(titles) or not titles:
        raise BadFileError(
            f"{path}: each column must have a name in the first line; one has none. A table of pandas is "
            "written by `to_csv(path, index=False)`."
        )
    if len(set(titles)) < len(titles):
        raise BadFileError(f"{path} has two columns of the same name.")
    try:
        numbers = [float(title) for title in titles]
    except ValueError:
        return
    raise BadFileError(f"{path}: its first line must be names of columns; it holds numbers, {numbers[0]:g}.")
