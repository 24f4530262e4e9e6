"""Parquet tables, and a table's columns in general."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pushforward.arrays import check_expansion
from pushforward.container import BadFileError
from pushforward.draws.contents import Contents, read_words, with_prefix
from pushforward.optional import need

KEY = "pushforward"
"""Under this name the schema keeps our words."""

STAT = "stats: "
COLUMN = re.compile(r"(.+)\[([0-9]{1,9}(?:,[0-9]{1,9}){0,15})\]", re.DOTALL)


def import_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow and its Parquet part, or say how to get it."""
    pyarrow = need("`.parquet` files need", "pyarrow", "draws", "parquet")
    return pyarrow, pyarrow.parquet


def columns(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return one column for each number of a draw: `mu`, `theta[0]`, `L[1,0]`."""
    found = {}
    for name, value in values.items():
        for place in np.ndindex(*value.shape[1:]):
            label = f"{name}[{','.join(map(str, place))}]" if place else name
            found[label] = np.ascontiguousarray(value[(slice(None), *place)])
    return found


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
