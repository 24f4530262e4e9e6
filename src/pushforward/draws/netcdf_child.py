"""Run as a program by `netcdf_files.py`: read a file of netCDF, and write its numbers to standard output.

First a line of JSON with names, types and shapes, then the numbers of one array after the other.
"""

import json
import math
import signal
import sys
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np

from pushforward.arrays import check_expansion

GROUPS = ("posterior", "unconstrained_posterior", "sample_stats")
SECONDS, BYTES = 1, 2**27
"""Of work, and of memory, that a file may take besides what its size explains."""


def limit(size: int) -> None:
    """Let this process have little time and memory, on systems that can say so."""
    try:
        import resource

        signal.setitimer(signal.ITIMER_PROF, SECONDS + size / 2**25)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + BYTES + 200 * size
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, AttributeError, OSError, ValueError):
        pass


def check_links(file: Any) -> None:
    """Refuse a file that points to others, or whose arrays are stored in others."""
    for group in (file, *(file[name] for name in file if file.get(name, getclass=True) is h5py.Group)):
        for name in group:
            if type(group.get(name, getlink=True)) is not h5py.HardLink:
                raise ValueError(f"{name[:80]!r} points elsewhere; copy the data here")
            node = group[name]
            if isinstance(node, h5py.Dataset) and (node.external or node.is_virtual):
                raise ValueError(f"{name[:80]!r} is stored in another file; copy it here")


def variables(file: Any) -> list[tuple[str, str, Any]]:
    """Return group, name and variable of all that are draws; labels of axes are not."""
    found = []
    for group in GROUPS:
        if group not in file.groups:
            if group == "posterior":
                raise ValueError("it has no group `posterior`")
            continue
        for name, variable in file[group].variables.items():
            if name in file[group].dimensions or (variable.dtype.kind not in "fiub" and variable.ndim < 2):
                continue
            if variable.dimensions[:2] != ("chain", "draw"):
                raise ValueError(
                    f"{name[:80]!r} must have the axes chain and draw; not {variable.dimensions}"
                )
            if variable.dtype.kind not in "fiub":
                raise ValueError(f"{name[:80]!r} must be an array of numbers")
            if {"scale_factor", "add_offset"} & {*variable.attrs}:
                raise ValueError(f"{name[:80]!r} is packed into fewer digits; write it unpacked")
            found.append((group, name, variable))
    return found


def numbers(variable: Any) -> np.ndarray:
    """Return the numbers of a variable, one chain after the other; what is marked as missing is NaN."""
    values = np.asarray(variable[...])
    fill = variable.attrs.get("_FillValue")
    if fill is not None and (missing := values == fill).any():
        values = np.where(missing, np.nan, values)
    return np.ascontiguousarray(values.reshape(-1, *values.shape[2:]))


def main(path: str, key: str) -> None:
    """Read one file, or end with a line that says why not."""
    size = Path(path).stat().st_size
    limit(size)
    with h5py.File(path, "r") as links:
        check_links(links)
    with h5netcdf.File(path, "r") as file:
        found = variables(file)
        check_expansion("it", sum(math.prod(v.shape) * v.dtype.itemsize for *_, v in found), size)
        words = file["posterior"].attrs.get(key)
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
