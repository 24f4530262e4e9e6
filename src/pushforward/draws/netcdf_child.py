"""Run as a program by `netcdf_files.py`: read a file of netCDF, and write its numbers to standard output.

First a line of JSON with names, types and shapes, then the numbers of one array after the other.
"""

import json
import math
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np

from pushforward.arrays import check_expansion

GROUPS = ("posterior", "unconstrained_posterior", "sample_stats")
SECONDS, BYTES = 1, 2**27  # of work, and of memory, that a file may take besides what its size explains


def limit(size: int) -> None:
    """Let this process have little time and memory, on systems that can say so."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        signal.setitimer(signal.ITIMER_PROF, SECONDS + size / 2**25)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + BYTES + 200 * size
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def check_links(file: Any) -> None:
    """Refuse a file that points to others, or whose arrays are stored in others."""
    for group in (file, *(file[name] for name in file if file.get(name, getclass=True) is h5py.Group)):
        for name in group:
            linked = type(group.get(name, getlink=True)) is not h5py.HardLink
            node = None if linked else group[name]
            if linked or (isinstance(node, h5py.Dataset) and (node.external or node.is_virtual)):
                raise ValueError(f"{name[:80]!r} points elsewhere; copy the data here")


def is_draws(name: str, variable: Any, axes: Any) -> bool:
    """Whether a variable holds draws and no labels of an axis; refuse one that could be neither."""
    if name in axes or (variable.dtype.kind not in "fiub" and variable.ndim < 2):
        return False
    if variable.dimensions[:2] != ("chain", "draw"):
        raise ValueError(f"{name[:80]!r} must have the axes chain and draw; it has {variable.dimensions}")
    if variable.dtype.kind not in "fiub" or {"scale_factor", "add_offset"} & {*variable.attrs}:
        raise ValueError(f"{name[:80]!r} must be numbers, and not packed into fewer digits")
    return True


def numbers(variable: Any) -> np.ndarray:
    """Return the numbers of a variable, one chain after the other; what is marked as missing is NaN."""
    values, fill = np.asarray(variable[...]), variable.attrs.get("_FillValue")
    if fill is not None and (missing := values == fill).any():
        values = np.where(missing, np.nan, values)
    return np.ascontiguousarray(values.reshape(-1, *values.shape[2:]))


def main(path: str, key: str) -> None:
    """Read one file, or end with a line that says why not."""
    limit(size := Path(path).stat().st_size)
    with h5py.File(path, "r") as links:
        check_links(links)
    with h5netcdf.File(path, "r") as file:
        groups = {name: file[name] for name in GROUPS if name in file.groups}
        if "posterior" not in groups:
            raise ValueError("it has no group `posterior`")
        found = [
            (group, name, variable)
            for group, held in groups.items()
            for name, variable in held.variables.items()
            if is_draws(name, variable, held.dimensions)
        ]
        check_expansion("it", sum(math.prod(v.shape) * v.dtype.itemsize for *_, v in found), size)
        words = groups["posterior"].attrs.get(key)
        arrays = [(group, name, numbers(variable)) for group, name, variable in found]
    told = [(group, name, array.dtype.str, array.shape) for group, name, array in arrays]
    about = {"groups": GROUPS, "arrays": told, "words": words if isinstance(words, str) else None}
    sys.stdout.buffer.write(json.dumps(about).encode() + b"\n")
    for *_, array in arrays:
        sys.stdout.buffer.write(array.view(np.uint8).data if array.size else b"")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2])
    except Exception as error:
        sys.exit(" ".join(str(error).split()) or type(error).__name__)
