"""The note beside each part of a set of draws: which rows it holds, and of which draws.

Draw `i` depends on the key and `i` alone, so machines that know nothing of each other can make one set of
draws together. Each writes a plain `.npy` file and, as `FILE.json`, what `pushforward join` must know to
tell a whole set from a heap of files: rows, seed, the sampler's checksum, and the draws' own.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from pushforward.container import BadFileError
from pushforward.runs.reading import read_object

FORMAT, VERSION = "pushforward-shard", 1
MAX_BYTES = 2**16
"""No honest note is larger; a stranger's shall not fill the memory."""

MAX_ROWS = 2**41
"""Rows that one key can number: 2^31 groups of 1,024."""

LIMITS = {
    "first": (0, MAX_ROWS), "rows": (1, MAX_ROWS), "total": (1, MAX_ROWS),
    "dim": (1, 2**31), "seed": (0, 2**32),
}  # fmt: skip
CHOICES = {"dtype": ("float32", "float64"), "latents": ("iid", "sobol")}


@dataclass(frozen=True)
class Note:
    """What stands beside a part: which rows of which draws it holds."""

    first: int
    rows: int
    total: int
    dim: int
    dtype: str
    seed: int
    latents: str
    sampler_sha256: str
    """Of the sampler's file."""
    draws_sha256: str
    """Of the rows' bytes, in C order."""

    def text(self) -> bytes:
        """Return the note as a file holds it."""
        text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2)
        return (text + "\n").encode()


def note_path(path: Path) -> Path:
    """Return where the note of the part at `path` stands."""
    return path.with_name(path.name + ".json")


def file_sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hashing(write: Callable[[np.ndarray], None], dtype: np.dtype) -> tuple[Callable[[np.ndarray], None], Any]:
    """Return a `write` that also digests the rows, and the digest."""
    digest = hashlib.sha256()

    def both(block: np.ndarray) -> None:
        block = np.ascontiguousarray(block, dtype)
        digest.update(block.data)
        write(block)

    return both, digest


def read_note(path: Path) -> Note:
    """Read the note beside the part at `path`, or raise a `BadFileError` that says what is wrong."""
    beside = note_path(path)
    if not beside.is_file():
        raise BadFileError(
            f"{path} has no note {beside.name} beside it, so it is not known which draws it holds. "
            "Parts come from `pushforward sample --shard K/N`; copy both files of each."
        )
    data = read_object(beside, MAX_BYTES, "a part of draws", FORMAT, VERSION)
    data = {name: value for name, value in data.items() if name not in ("format", "version")}
    _check(data, beside)
    return Note(**data)


def _check(data: dict[str, Any], beside: Path) -> None:
    names = {field.name for field in fields(Note)}
    if data.keys() != names:
        odd = ", ".join(sorted(map(str, data.keys() ^ names))[:5])
        raise BadFileError(f"{beside} does not describe a part of draws: missing or unknown {odd}.")
    for name, (least, most) in LIMITS.items():
        value = data[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise BadFileError(f"{beside}: {name!r} must be a whole number from {least} to {most}.")
    if data["first"] + data["rows"] > data["total"]:
        raise BadFileError(f"{beside}: its rows end after the last of {data['total']:,}.")
    for name, known in CHOICES.items():
        if data[name] not in known:
            raise BadFileError(f"{beside}: {name!r} must be one of {', '.join(known)}.")
    for name in ("sampler_sha256", "draws_sha256"):
        if not isinstance(data[name], str) or not re.fullmatch("[0-9a-f]{64}", data[name]):
            raise BadFileError(f"{beside}: {name!r} must be a checksum of 64 hexadecimal digits.")
