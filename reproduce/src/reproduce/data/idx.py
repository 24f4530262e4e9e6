"""The idx format of MNIST: a magic number, the sizes, the bytes; gzipped or not."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from pushforward.files import BadFileError

UNSIGNED_BYTES = 8
MAX_AXES = 4


def read_idx(path: str | Path) -> np.ndarray:
    """Return an idx file's array of bytes, or say what is wrong with the file."""
    path = Path(path)
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                data = file.read()
        else:
            data = path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise BadFileError(f"{path} cannot be read: {error}. Fetch it again.") from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != UNSIGNED_BYTES or not 1 <= data[3] <= MAX_AXES:
        raise BadFileError(f"{path} is not an idx file of bytes: it must begin with 0, 0, 8 and its axes.")
    axes = data[3]
    sizes = tuple(int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes))
    start = 4 + 4 * axes
    if len(data) - start != math.prod(sizes):
        raise BadFileError(
            f"{path} is cut short or too long: its sizes {sizes} ask for {math.prod(sizes):,} bytes and it "
            f"holds {max(len(data) - start, 0):,}. Fetch it again."
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(sizes)
