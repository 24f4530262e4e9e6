"""Draws as ArviZ InferenceData, and its netCDF: written in memory, and read in a process of its own.

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
from collections.abc import Mapping
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


INDEPENDENT = (
    "independent draws of a one-shot sampler: no Markov chain, so R-hat has no meaning and the "
    "effective sample size is the number of draws"
)
DEPENDENT = (
    "not independent of each other, and no Markov chain: R-hat and effective sample sizes have no meaning"
)


def import_arviz() -> Any:
    """Import ArviZ without the news that it prints, or say how to get it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return need("`to_arviz` and `.nc` files need", "arviz", "draws")


def to_arviz(draws: Contents, *, coordinates: bool = False) -> Any:
    """Return InferenceData, with `sample_stats` if anything is known of single draws."""
    arviz, about = import_arviz(), draws.about
    attributes = {
        "inference_library": "pushforward",
        "draws": DEPENDENT if about.get("latents") == "sobol" or "thinned" in about else INDEPENDENT,
        **{name: _text(value) for name, value in about.items()},
    }
    record = draws.parameters
    dims = {item.name: list(item.dims) for item in record.items if item.dims} if record else {}
    labels = {axis: list(names) for axis, names in record.coords} if record else {}
    groups = {"posterior": _dataset(arviz, draws.values, dims, labels)}
    if draws.stats:
        groups["sample_stats"] = _dataset(arviz, draws.stats, {}, {})
    if coordinates and draws.coordinates is not None:
        named = {"coordinates": draws.coordinates}
        groups["unconstrained_posterior"] = _dataset(arviz, named, {"coordinates": ["coordinate"]}, {})
    for group in groups.values():
        group.attrs.update(attributes)
    return arviz.InferenceData(**groups)


def _dataset(arviz: Any, values: Mapping[str, np.ndarray], dims: Any, labels: Any) -> Any:
    with warnings.catch_warnings():
        # More chains than draws, says ArviZ of a single draw.
        warnings.simplefilter("ignore")
        used = {axis for name in values for axis in dims.get(name, ())}
        found = arviz.dict_to_dataset(
            {name: value[None] for name, value in values.items()},
            dims={name: dims[name] for name in values if name in dims},
            coords={axis: entries for axis, entries in labels.items() if axis in used},
        )
    # ArviZ notes the time of making; draws are the same whenever they are made.
    found.attrs = {}
    return found


def _text(value: Any) -> str | int | float:
    """Return an attribute that every file format holds."""
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return value if plain else json.dumps(value)
