"""Files and folders that appear whole or not at all; whatever was there before stays until then.

What is written stands beside its place under a hidden name, `.NAME.DIGITS.part`, and is locked while its
process lives. So the next writer of the same name can tell what a kill left behind, and removes it.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # a system without these locks, where nothing can be told to be left behind
    fcntl = None

SUFFIX = ".part"


def check_place(path: Path) -> None:
    """Refuse a path where no file can be written, by the name that its user gave it."""
    folder = path.absolute().parent
    if path.is_dir():
        raise IsADirectoryError(f"`path` must name a file; {path} is a folder.")
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`path` must lie in a folder that exists; there is no folder {path.parent} for {path}. Make it "
            "first, or choose another."
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"`path` must lie where this user can write; {path.parent} is not.")


def write_atomically(path: str | os.PathLike, data: bytes | memoryview) -> None:
    """Write a file so that a crash or a full disk leaves whatever was there before."""
    with replacing(Path(path)) as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write to, which takes the place of `path` once it is whole."""
    check_place(path)
    sweep(path)
    while True:
        beside = name_beside(path)
        # Not `tempfile`, whose files only their owner may read. Always a new file, and no link's target.
        file = open(beside, "xb")  # noqa: SIM115
        hold(file.fileno())
        if os.fstat(file.fileno()).st_nlink:
            break
        file.close()  # a sweep came between the two lines
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # there, no open file can be renamed
            os.replace(beside, path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            # A full disk does not say where, and NumPy not even why.
            number = error.errno or errno.ENOSPC
            raise OSError(number, os.strerror(number), str(path)) from error
        raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a hidden folder beside `path`, which is removed unless it has been renamed."""
    sweep(path)
    beside = name_beside(path)
    beside.mkdir()
    held = os.open(beside, os.O_RDONLY)
    try:
        hold(held)
        yield beside
    finally:
        os.close(held)
        shutil.rmtree(beside, ignore_errors=True)


def name_beside(path: Path) -> Path:
    """Return a hidden name that nothing has; short, since names may not be as long as one likes."""
    return path.with_name(f"{_start(path)}{secrets.token_hex(4)}{SUFFIX}")


def _start(path: Path) -> str:
    return f".{path.name[-50:]}."


def hold(descriptor: int) -> None:
    """Lock an open file or folder until it is closed, where the file system can."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def sweep(path: Path) -> None:
    """Remove what dead processes left beside `path`, and nothing that is a link or is still written to."""
    if fcntl is None:
        return
    length = len(_start(path)) + 8 + len(SUFFIX)
    for name in os.listdir(path.absolute().parent):
        if len(name) != length or not (name.startswith(_start(path)) and name.endswith(SUFFIX)):
            continue
        left = path.with_name(name)
        with suppress(OSError):
            held = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(held)
