"""Draws on disk: one format for each need, all written whole or not at all, all read as a stranger's.

`.npz` and `.nc` hold all that is known; a Parquet table the record beside its columns; `.npy` and `.csv` the
numbers alone.
"""

import json
import os
import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import jax
import numpy as np

from pushforward.atomic import replacing
from pushforward.container import BadFileError, regular
from pushforward.draws import netcdf_files, plain_files, table_files
from pushforward.draws.contents import Contents
from pushforward.draws.record import Draws
from pushforward.parameters import Parameters

Format = tuple[Callable[[BinaryIO, Contents], object], Callable[[Path], Contents]]
"""What writes a file of draws, and what reads it."""

FORMATS: dict[str, Format] = {
    ".npz": (plain_files.write_npz, plain_files.read_npz),
    ".npy": (plain_files.write_npy, plain_files.read_npy),
    ".csv": (table_files.write_csv, table_files.read_csv),
    ".parquet": (table_files.write_parquet, table_files.read_parquet),
    ".nc": (netcdf_files.write_netcdf, netcdf_files.read_netcdf),
}


def save(draws: Draws, path: str | os.PathLike) -> None:
    """Write draws to a file of the format that its suffix names, atomically."""
    path = Path(path)
    write = _format(path)[0]
    with replacing(path) as file:
        write(file, draws.contents())


def load_draws(path: str | os.PathLike, *, like: Any = None) -> Draws:
    """Read draws from a `.npz`, `.npy`, `.csv`, `.parquet` or `.nc` file: ours, or anyone's of the same form.

    Nothing in the file is executed, and no size in it is believed; what is wrong with it is said by a
    `BadFileError`. A plain array of shape `(n, dim)` becomes `x`; several chains of ArviZ become one. `like`
    is a sampler or a target (or its `parameters`) that says how the values are constrained, for files that do
    not: `.npy` and `.csv` files of named draws, and those of other programs. Draws that are not finite stay,
    and a warning says how many there are.
    """
    path = Path(path)
    read = _format(path)[1]
    path = regular(path, "a file of draws")
    try:
        contents = read(path).checked()
    except BadFileError as error:
        words = str(error)
        raise BadFileError(words if str(path) in words else f"{path} does not hold draws: {words}") from None
    except ImportError:
        raise
    # Whatever the readers of other formats raise at a stranger's file: it is the file that is wrong.
    except Exception as error:
        words = str(error).strip().splitlines()
        raise BadFileError(
            f"{path} cannot be read as draws: {words[0] if words else type(error).__name__}. It may be "
            "truncated, corrupted or another kind of file; write it again."
        ) from None
    return _draws(path, contents, contents.parameters if like is None else _parameters(like))


def _draws(path: Path, contents: Contents, parameters: Parameters | None) -> Draws:
    if parameters is not None and (words := contents.misfit(parameters)):
        raise ValueError(f"`like`{words}. The file is {path}.")
    coordinates = contents.coordinates if contents.parameters == parameters else None
    if coordinates is None and parameters is not None:
        with np.errstate(all="ignore"):
            coordinates = parameters.unconstrain(contents.values)
    found = (OrderedDict(contents.values), coordinates, dict(contents.stats))
    values, coordinates, stats = jax.tree.map(jax.device_put, found)
    draws = Draws(values, coordinates, stats, parameters, json.dumps(contents.about))
    arrays = {**values, **({} if coordinates is None else {"coordinates": coordinates})}
    bad = {name: ~np.isfinite(np.asarray(y)).reshape(len(draws), -1).all(1) for name, y in arrays.items()}
    if names := [name for name, rows in bad.items() if rows.any()]:
        count = int(np.logical_or.reduce([bad[name] for name in names]).sum())
        warnings.warn(
            f"{path}: {count:,} of its {len(draws):,} draws are not finite, in {', '.join(names[:5])}. They "
            "stay among the others: what made them has diverged, or they lie on the edge of a constraint.",
            stacklevel=3,
        )
    return draws


def _parameters(like: Any) -> Parameters:
    found = like if isinstance(like, Parameters) else getattr(like, "parameters", None)
    if isinstance(found, Parameters):
        return found
    if isinstance(dim := getattr(like, "dim", None), int):
        return Parameters.plain(dim)
    raise TypeError(f"`like` must be a sampler, a target or its parameters; got {type(like).__name__}.")


def _format(path: Path) -> Format:
    if path.suffix not in FORMATS:
        raise ValueError(f"`path` must end in {', '.join(FORMATS)}; got {path.name!r}.")
    return FORMATS[path.suffix]
