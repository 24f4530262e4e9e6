"""Arrays and text from strangers, read so that nothing is executed and no size is believed.

NumPy's own reader allocates what a header claims before it has seen a byte of it, and unpacks an archive
however large it becomes. Here the claims are held against the file first.
"""

import ast
import contextlib
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pushforward.container import BadFileError, regular

MAGIC = b"\x93NUMPY"
MAX_HEADER, MAX_MEMBERS, MAX_LIST = 2**12, 2**12, 2**20
"""Bytes of a header, which takes four hundred times its length once it is parsed; arrays of an archive, and
bytes of the list of these: no honest file has more."""

MAX_FIELDS = 2**18
"""Bytes of the header of a structured array, which is not parsed as Python but field by field."""

MAX_EXPANSION, ALWAYS_ALLOWED = 100, 2**22
"""How many times its own size a file may unpack to: deflate can promise a thousand, data do not. And bytes
that it may unpack to whatever its size: a small grid of zeros is no bomb."""

FIELDS = b"{'descr': ["
"""What the header of a structured array begins with; that of a plain one names its type at once."""

_TYPE = r"[<>=|]?[biufc?][0-9]{0,2}"
_STRUCTURED = re.compile(
    r"\{'descr': \[(.*)\], 'fortran_order': (?:True|False), 'shape': \(([0-9]{1,18}),\), \}\s*", re.DOTALL
)
_FIELD = re.compile(
    r"""\(('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"), """  # the name
    rf"'({_TYPE})'"
    r"(?:, \(((?:[0-9]{1,18},? ?)+)\))?\)(?:, |$)"  # the shape
)


class ArrayHeader(NamedTuple):
    """What a `.npy` file says of itself."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    length: int  # bytes before the first number

    @property
    def num_bytes(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(path: str | os.PathLike) -> np.ndarray:
    """Read a `.npy` file of numbers, or raise a `BadFileError` that says what is wrong with it."""
    path = regular(path)
    with _refusing(path), path.open("rb") as file:
        header = npy_header(file, path)
        return _shaped(np.fromfile(file, header.dtype, math.prod(header.shape)), header)


def read_npz(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read all arrays of a `.npz` archive by name, or raise a `BadFileError`."""
    path = regular(path)
    with _refusing(path), path.open("rb") as file:
        # The list of members, which `zipfile` reads as a whole.
        end: Any = zipfile._EndRecData(file)  # pyright: ignore[reportAttributeAccessIssue]
        if end and end[5] > MAX_LIST:
            raise BadFileError(f"{path} must list its arrays in {MAX_LIST:,} bytes; it takes {end[5]:,}.")
    with _refusing(path), zipfile.ZipFile(path) as archive:
        _check_members(path, archive.infolist())
        return {m.filename.removesuffix(".npy"): _read_member(archive, m, path) for m in archive.infolist()}


def npy_header(file: Any, path: Path, size: int | None = None) -> ArrayHeader:
    """Read a header and hold it against the size of the open file (or of an archive's member)."""
    start = file.read(10)
    if start[:6] != MAGIC or len(start) < 10:
        raise BadFileError(f"{path} is not a file of `numpy.save`: it does not begin as one.")
    length = 2
    if start[6] in (2, 3):
        start += file.read(2)
        length = 4
    elif start[6] != 1:
        raise BadFileError(f"{path} has version {start[6]} of NumPy's format; versions 1 to 3 can be read.")
    count = int.from_bytes(start[8 : 8 + length], "little")
    text = file.read(min(count, MAX_FIELDS))
    fields = text.startswith(FIELDS)
    if count > (MAX_FIELDS if fields else MAX_HEADER):
        raise BadFileError(f"{path} claims a header of {count:,} bytes; no array of numbers has one.")
    words = text.decode("utf-8" if start[6] == 3 else "latin-1", "replace")
    dtype, shape, fortran = _parse_fields(words, path) if fields else _parse(words, path)
    header = ArrayHeader(dtype, shape, fortran, len(start) + count)
    size = os.fstat(file.fileno()).st_size if size is None else size
    if header.length + header.num_bytes != size:
        raise BadFileError(
            f"{path} claims {dtype} of shape {shape}, which takes {header.length + header.num_bytes:,} "
            f"bytes; it holds {size:,}. It is truncated or corrupted; write it again."
        )
    return header


def write_npy_header(file: Any, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Write what stands before the numbers of a `.npy` file, whatever its fields are called."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    try:
        np.lib.format.write_array_header_1_0(file, header)
    except ValueError:
        # Of more names than that version can hold, or with other letters.
        text = (str(header)[:-1] + ", }\n").encode()
        file.write(MAGIC + b"\x03\x00" + len(text).to_bytes(4, "little") + text)


def _parse(text: str, path: Path) -> tuple[np.dtype, tuple[int, ...], bool]:
    try:
        fields = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or fields.keys() != {"descr", "fortran_order", "shape"}:
        raise BadFileError(f"{path} is corrupted: its header does not describe an array.")
    descr, shape, fortran = fields["descr"], fields["shape"], fields["fortran_order"]
    if not isinstance(descr, str) or not re.fullmatch(_TYPE, descr):
        raise BadFileError(f"{path} must hold numbers; got an array of {str(descr)[:40]!r}.")
    counts = isinstance(shape, tuple) and all(type(n) is int and 0 <= n < 2**63 for n in shape)
    if not counts or len(shape) > 32 or not isinstance(fortran, bool):
        raise BadFileError(f"{path} is corrupted: {str(shape)[:40]} is no shape of an array.")
    return _dtype(descr, path), shape, fortran


def _parse_fields(text: str, path: Path) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Parse the header of a structured array, whose one axis numbers its rows."""
    match, fields, end = _STRUCTURED.fullmatch(text), [], 0
    try:
        while match and (field := _FIELD.match(match[1], end)):
            shape = tuple(int(n) for n in (field[3] or "").split(",") if n.strip())
            fields.append((ast.literal_eval(field[1]), field[2], shape))
            end = field.end()
    except (ValueError, SyntaxError):
        end = -1  # a name that Python would not write
    if not match or not fields or end != len(match[1]):
        raise BadFileError(f"{path} must hold numbers, or one row of named numbers for each draw.")
    dtype = _dtype(fields, path)
    if not dtype.itemsize:
        raise BadFileError(f"{path} is corrupted: its rows hold nothing.")
    return dtype, (int(match[2]),), False


def _dtype(descr: Any, path: Path) -> np.dtype:
    try:
        return np.dtype(descr)
    except (TypeError, ValueError):
        raise BadFileError(f"{path} must hold numbers; got an array of {str(descr)[:40]}.") from None


def check_expansion(file: str, claimed: int | float, size: int) -> None:
    """Refuse a file that says that it unpacks to far more than it is."""
    if claimed > max(ALWAYS_ALLOWED, MAX_EXPANSION * size):
        raise BadFileError(
            f"{file} claims to unpack to {claimed:,} bytes, from {size:,}: more than {MAX_EXPANSION} times "
            "as much. It is corrupted or meant to fill the memory; if it is honest, write it unpacked."
        )


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    size = path.stat().st_size
    if len(members) > MAX_MEMBERS:
        raise BadFileError(f"{path} must hold at most {MAX_MEMBERS:,} arrays; it holds {len(members):,}.")
    names = {member.filename for member in members}
    if len(names) < len(members):
        raise BadFileError(f"{path} holds two arrays of the same name.")
    if odd := [name for name in names if not name.endswith(".npy")]:
        raise BadFileError(f"{path} must hold arrays only; it also holds {odd[0][:80]!r}.")
    packed, whole = sum(m.compress_size for m in members), sum(m.file_size for m in members)
    check_expansion(str(path), whole if packed <= size else math.inf, size)


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> np.ndarray:
    with archive.open(member) as file:
        header = npy_header(file, path, member.file_size)
        if header.dtype.names:
            raise BadFileError(f"{path} must hold numbers; {member.filename[:80]!r} holds rows of several.")
        data = np.empty(header.num_bytes, np.uint8)
        view, filled = data.data, 0
        while filled < len(view):
            # In pieces: `zipfile` would gather the whole a second time.
            piece = file.read(min(2**20, len(view) - filled))
            if not piece:
                raise BadFileError(f"{path} is truncated: {member.filename[:80]!r} ends too early.")
            view[filled : filled + len(piece)] = piece
            filled += len(piece)
        # Reading on is what makes `zipfile` compare the checksum.
        if file.read(1):
            raise BadFileError(f"{path} is corrupted: {member.filename[:80]!r} goes on after its end.")
    return _shaped(data.view(header.dtype), header)


def _shaped(flat: np.ndarray, header: ArrayHeader) -> np.ndarray:
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Make a `BadFileError` of whatever a bad file may raise."""
    try:
        yield
    except BadFileError:
        raise
    except (
        *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, IndexError, OSError),
        # Encryption, packings that Python does not know, sizes and dates that make no sense.
        *(RuntimeError, ValueError, OverflowError, MemoryError),
    ) as error:
        # Of the machine's own errors only a seek to before the start, since that is the file's claim too.
        if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
            raise
        raise BadFileError(
            f"{path} cannot be read: {error or type(error).__name__}. Write it again."
        ) from None
