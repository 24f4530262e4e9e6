"""ArviZ's netCDF: written in memory, and read in a process of its own.

HDF5 trusts its files: at a damaged one it may go on for ever, take all memory, or end the process. So a child
with little time and memory reads it (`netcdf_child.py`), and hands the numbers over.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pushforward.container import BadFileError
from pushforward.draws.contents import Contents, read_words
from pushforward.optional import need

KEY, PATIENCE = "pushforward", 600
"""The attribute that keeps our words; and seconds after which an idle child is given up."""


def write_netcdf(file: BinaryIO, contents: Contents) -> None:
    """Write ArviZ InferenceData."""
    from pushforward.draws.labelled import to_arviz

    odd = [name for name in (*contents.values, *contents.stats) if "/" in name]
    if odd:
        raise ValueError(f"netCDF has no name with a slash; {odd[0]!r} can be written to .npz.")
    data = to_arviz(contents, coordinates=True)
    data.posterior.attrs[KEY] = contents.words()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # To memory: on a disk that is full, HDF5 ends the process by a segmentation fault.
        file.write(data.to_datatree().to_netcdf(engine="h5netcdf"))


def read_netcdf(path: Path) -> Contents:
    """Read InferenceData of ours or of anyone's; chains are put one after the other."""
    groups, words = _read_apart(path)
    posterior = groups["posterior"]
    if words is None:
        return Contents(posterior)
    shapes, parameters, about = read_words(words)
    # The file itself keeps names in the order of the alphabet.
    posterior = {name: posterior[name] for name in (*shapes, *posterior) if name in posterior}
    coordinates = groups["unconstrained_posterior"].get("coordinates")
    return Contents(posterior, coordinates, groups["sample_stats"], parameters, about)


def _read_apart(path: Path) -> tuple[dict[str, dict[str, np.ndarray]], str | None]:
    """Return the arrays of each group by name, and our words if there are any."""
    need("`.nc` files need", "h5netcdf", "draws")
    with tempfile.TemporaryFile() as passing:
        words = [sys.executable, "-P", str(Path(__file__).with_name("netcdf_child.py")), str(path), KEY]
        seen = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=passing, stderr=subprocess.PIPE, env=seen,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            reason = said[-1] if said and done.returncode == 1 else "HDF5 did not come to an end with it"
            raise BadFileError(f"{path} cannot be read as netCDF: {reason}. Write it again.")
        passing.seek(0)
        told: Any = json.loads(passing.readline())
        groups: dict[str, dict[str, np.ndarray]] = {name: {} for name in told["groups"]}
        for group, name, kind, shape in told["arrays"]:
            flat = np.fromfile(passing, kind, math.prod(shape))
            groups[group][name] = flat.reshape(shape)
    return groups, told["words"]
