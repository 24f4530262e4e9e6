"""Draws as tables: lines of text, and Parquet; a column for each number of a draw."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pushforward.arrays import check_expansion
from pushforward.container import BadFileError
from pushforward.draws.contents import Contents, columns, gathered, read_words, with_prefix
from pushforward.draws.plain_files import are_coordinates, unnamed
from pushforward.optional import need

MAX_LINE, MAX_COLUMNS = 2**22, 2**16  # bytes of the line of names, and how many names there may be


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
        if line.count(",") >= MAX_COLUMNS:
            raise BadFileError(f"{path} must have at most {MAX_COLUMNS:,} columns.")
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


KEY = "pushforward"  # under this name the schema keeps our words

STAT = "stats: "


def import_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow and its Parquet part, or say how to get it."""
    pyarrow = need("`.parquet` files need", "pyarrow", "draws", "parquet")
    return pyarrow, pyarrow.parquet


def write_parquet(file: BinaryIO, contents: Contents) -> None:
    """Write a table with a column a number."""
    pyarrow, parquet = import_pyarrow()
    stats = {STAT + name: stat for name, stat in contents.stats.items()}
    table = pyarrow.table({**columns(contents.values), **columns(stats)})
    parquet.write_table(table.replace_schema_metadata({KEY: contents.words()}), file)


def read_parquet(path: Path) -> Contents:
    """Read a table of ours, or of anyone's whose columns are numbers."""
    _, parquet = import_pyarrow()
    with parquet.ParquetFile(path, thrift_string_size_limit=2**24, thrift_container_size_limit=2**20) as file:
        about = file.metadata
        check_expansion("it", 8 * about.num_rows * about.num_columns, path.stat().st_size)
        schema = file.schema_arrow
        odd = [f.name for f in schema if str(f.type) not in ("float", "double") and "int" not in str(f.type)]
        if odd:
            raise BadFileError(f"{path}: its columns must be numbers; {odd[0][:80]!r} is not.")
        if len(set(schema.names)) < len(schema.names):
            raise BadFileError(f"{path} has two columns of the same name.")
        table = file.read()
    found = {name: np.asarray(table.column(name).to_numpy()) for name in table.column_names}
    stats = gathered(with_prefix(found, STAT), {})
    words = (schema.metadata or {}).get(KEY.encode())
    shapes, parameters, about = ({}, None, {}) if words is None else read_words(words.decode())
    return Contents(gathered(found, shapes), None, stats, parameters, about)
