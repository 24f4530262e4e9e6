"""The file itself, without JAX: safetensors read by NumPy alone, every claim checked before it is believed.

A file is the length of its header (8 bytes, little-endian), the header (JSON: what tensors there are, and our
own words under `__metadata__`), and the numbers. Nothing in it is executed, nothing is allocated before the
sizes add up to the size of the file, and a SHA-256 over words and tensors makes a flipped bit an error.
"""

import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

FORMAT = "pushforward"
VERSION = 1

MAX_HEADER = 2**22
"""Bytes of JSON. An honest header takes thousands; a hostile one shall not fill the memory once parsed."""

FEW_WORDS = 2**17
"""Parts of JSON that a text may have besides one for every 16 letters. Parsed, each takes some 70 bytes."""

MAX_LINE = 2**16  # bytes of a line of text

MAX_AXES = 8

_DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}


class BadFileError(ValueError):
    """A file that is not what it should be: truncated, corrupted, of another kind or version."""


SAMPLER = "sampler.pf"  # the name of the sampler in the folder of a run

_OTHERS = {
    b"\x93NUMPY": "a file of `numpy.save`",
    b"PK\x03\x04": "an archive, as `numpy.savez` writes them",
    b"\x89HDF": "a file of netCDF or HDF5",
    b"PAR1": "a Parquet table",
}
"""What other files begin with: as the length of a header, more than any sampler has."""


def regular(path: str | os.PathLike, what: str = "a file of arrays") -> Path:
    """Return the path of a file that can be read from its start to its end, or say why it is none."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"`path` must name {what}; there is no file {path}.")
    if path.is_dir():
        raise IsADirectoryError(f"`path` must name {what}; {path} is a folder.")
    if not path.is_file():
        raise BadFileError(f"{path} is not a regular file. Copy what it holds to one and load that.")
    return path


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers, from 1, or raise a `BadFileError` that names one.

    However large the file, memory holds one line of it.
    """
    with path.open("rb") as file:
        for number in itertools.count(1):
            if not (line := file.readline(MAX_LINE + 1)):
                return
            if len(line) > MAX_LINE:
                raise BadFileError(f"{path}, line {number}: no line may be longer than {MAX_LINE:,} bytes.")
            try:
                yield number, line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BadFileError(f"{path}, line {number}: corrupted, not text ({error}).") from None


def header_size(data: bytes) -> int:
    """Return how many bytes of a safetensors file are its header."""
    return int.from_bytes(data[:8], "little")


def digest(body: str, tensors: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of the words and, name by name, of type, shape and numbers of every tensor."""
    found = hashlib.sha256(body.encode())
    for name in sorted(tensors):
        array = tensors[name]
        found.update(f"{name}:{array.dtype}:{array.shape}:".encode())
        # The bytes themselves and no copy of them.
        found.update(np.ascontiguousarray(array).data if array.size else b"")
    return found.hexdigest()


def check_json(text: str) -> str:
    """Return JSON that will not fill the memory once it is parsed; a `ValueError` otherwise."""
    if sum(map(text.count, ",[{")) > FEW_WORDS + len(text) // 16:
        raise ValueError("it has far more parts than letters to say something with")
    return text


def read(path: str | os.PathLike) -> tuple[str, dict[str, np.ndarray]]:
    """Return the words (JSON text) and the tensors of a file that `files.dump` wrote, its checksum verified.

    Of the folder of a run it is the sampler in it. The tensors are read-only views of one block of bytes.
    Anything else is a `BadFileError`.
    """
    path = Path(path)
    if path.is_dir() and not (path / SAMPLER).is_file():
        raise IsADirectoryError(
            f"`path` must name a saved sampler or the folder of a run; {path} is a folder without {SAMPLER}."
        )
    path = regular(path / SAMPLER if path.is_dir() else path, "a saved sampler")
    with open(path, "rb") as file:
        try:
            entries = _header(path, file)
            words = _words(path, entries.pop("__metadata__", {}))
            _check_types(path, entries)
            places = _places(entries, _rest(file))
            data = file.read()
            tensors = {
                name: np.frombuffer(data, dtype, count, start).reshape(shape)
                for name, (dtype, shape, count, start) in places.items()
            }
            check_json(words["body"])
            intact = digest(words["body"], tensors) == words.get("sha256")
        except BadFileError:
            raise
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError, MemoryError) as error:
            raise BadFileError(
                f"{path} is not a sampler that can be read: {error}. It may be truncated or another kind "
                "of file; save the sampler again."
            ) from None
    if not intact:
        raise BadFileError(f"{path} is corrupted: its checksum does not match. Save the sampler again.")
    return words["body"], tensors


def _rest(file: BinaryIO) -> int:
    """Return how many bytes follow the place where the file is open."""
    return os.fstat(file.fileno()).st_size - file.tell()


def _header(path: Path, file: BinaryIO) -> dict[str, Any]:
    start = file.read(8)
    for mark, kind in _OTHERS.items():
        if start.startswith(mark):
            raise BadFileError(
                f"{path} is not a sampler; it is {kind}. Draws are read by `pushforward.load_draws(path)`."
            )
    size = header_size(start)
    if not 2 <= size <= min(MAX_HEADER, _rest(file)):
        raise ValueError("it does not begin as a file of `sampler.save`")
    text = file.read(size).decode("utf-8")
    header = json.loads(check_json(text), object_pairs_hook=_unique, parse_constant=_refuse)
    if not isinstance(header, dict):
        raise TypeError("its header is not a JSON object")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("its header names something twice")
    return dict(pairs)


def _refuse(constant: str) -> None:
    raise ValueError(f"its header holds {constant}")


def _words(path: Path, words: Any) -> dict[str, str]:
    if not isinstance(words, dict) or not all(isinstance(value, str) for value in words.values()):
        raise TypeError("its words are not text")
    if words.get("format") != FORMAT or "body" not in words:
        raise BadFileError(
            f"{path} is a safetensors file but not a sampler: it lacks the {FORMAT!r} header. "
            "Files come from `sampler.save(path)`."
        )
    if words.get("version") != str(VERSION):
        raise BadFileError(
            f"{path} has format version {words.get('version')!r}; this release reads version {VERSION}. "
            "Install the release that wrote it, or save it again."
        )
    return words


def _check_types(path: Path, entries: Mapping[str, Any]) -> None:
    for name, entry in entries.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise ValueError(f"array {name!r} is not described by its type, shape and place")
        if entry["dtype"] not in tuple(_DTYPES):
            raise BadFileError(f"{path}: array {name!r} must be float32 or float64; got {entry['dtype']}.")


def _places(
    entries: Mapping[str, Any], num_bytes: int
) -> dict[str, tuple[np.dtype, tuple[int, ...], int, int]]:
    """Return type, shape, count and start of each tensor: side by side, from the first byte to the last."""
    places, end = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: _integers(item[1]["data_offsets"], 2)):
        dtype, shape = _DTYPES[entry["dtype"]], _integers(entry["shape"], None)
        start, stop = _integers(entry["data_offsets"], 2)
        # Python's integers do not overflow, so that a product of huge sizes is huge and not small.
        count = math.prod(shape)
        if start != end or stop - start != count * dtype.itemsize or stop > num_bytes:
            raise ValueError(f"array {name!r} does not fit its place")
        places[name], end = (dtype, shape, count, start), stop
    if end != num_bytes:
        raise ValueError(f"its arrays take {end:,} bytes, of which the file has {num_bytes:,}")
    return places


def _integers(values: Any, length: int | None) -> tuple[int, ...]:
    plain = isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
    if not plain or len(values) > MAX_AXES or (length is not None and len(values) != length):
        raise ValueError("its header describes an array by something other than sizes")
    return tuple(values)
