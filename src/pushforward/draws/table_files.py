"""Formats of other programs: Parquet tables and ArviZ's netCDF."""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pushforward.arrays import check_expansion
from pushforward.container import BadFileError
from pushforward.draws.contents import Contents, read_words, with_prefix
from pushforward.optional import need

KEY = "pushforward"
"""Under this name both formats keep our words."""

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


def write_parquet(path: Path, contents: Contents) -> None:
    """Write a table with a column a number."""
    pyarrow, parquet = import_pyarrow()
    stats = {STAT + name: stat for name, stat in contents.stats.items()}
    table = pyarrow.table({**columns(contents.values), **columns(stats)})
    parquet.write_table(table.replace_schema_metadata({KEY: contents.words()}), path)


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


def write_netcdf(path: Path, contents: Contents) -> None:
    """Write ArviZ InferenceData."""
    from pushforward.draws.labelled import to_arviz

    odd = [name for name in (*contents.values, *contents.stats) if "/" in name]
    if odd:
        raise ValueError(f"netCDF has no name with a slash; {odd[0]!r} can be written to .npz.")
    data = to_arviz(contents, coordinates=True)
    data.posterior.attrs[KEY] = contents.words()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.to_netcdf(str(path), engine="h5netcdf", compress=False)


def read_netcdf(path: Path) -> Contents:
    """Read InferenceData of ours or of anyone's; chains are put one after the other."""
    _check_links(path)
    posterior, words = _group(path, "posterior")
    if words is None:
        return Contents(posterior)
    (free, _), (stats, _) = _group(path, "unconstrained_posterior"), _group(path, "sample_stats")
    shapes, parameters, about = read_words(words)
    # The file itself keeps names in the order of the alphabet.
    posterior = {name: posterior[name] for name in (*shapes, *posterior) if name in posterior}
    return Contents(posterior, free.get("coordinates"), stats, parameters, about)


def _check_links(path: Path) -> None:
    """Refuse a file that points to others, or whose arrays are stored in others."""
    import h5py

    with h5py.File(path, "r") as opened:
        file: Any = opened
        for group in (file, *(file[name] for name in file if file.get(name, getclass=True) is h5py.Group)):
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise BadFileError(f"{path}: {name[:80]!r} points elsewhere; copy the data here.")
                node = group[name]
                if isinstance(node, h5py.Dataset) and (node.external or node.is_virtual):
                    raise BadFileError(f"{path}: {name[:80]!r} is stored in another file; copy it here.")


def _group(path: Path, group: str) -> tuple[dict[str, np.ndarray], str | None]:
    import xarray

    try:
        opened = xarray.open_dataset(path, group=group, engine="h5netcdf", decode_times=False)
    except (OSError, KeyError) as error:
        if group != "posterior":
            return {}, None
        raise BadFileError(f"{path} has no group `posterior` that can be read ({error}).") from None
    with opened as data:
        check_expansion("it", data.nbytes, path.stat().st_size)
        words = data.attrs.get(KEY)
        values = {str(name): _without_chains(path, str(name), data[name]) for name in data.data_vars}
    return values, words if isinstance(words, str) else None


def _without_chains(path: Path, name: str, array: Any) -> np.ndarray:
    if array.dims[:2] != ("chain", "draw"):
        raise BadFileError(f"{path}: {name!r} must have the axes chain and draw; it has {array.dims}.")
    values = np.asarray(array.values)
    return values.reshape(-1, *values.shape[2:])
