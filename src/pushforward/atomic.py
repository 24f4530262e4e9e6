"""Files and folders that appear whole or not at all; whatever was there before stays until then.

What is written stands beside its place under a hidden name, `.NAME.DIGITS.part`, and is locked while its
process lives. So the next writer of the same name can tell what a kill left behind, and removes it.
"""

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # a system without these locks, where nothing can be told to be left behind
    fcntl = None

SUFFIX, YOUNG = ".part", 2.0
"""What hidden names end in; and seconds in which a process has locked what it made."""


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
    beside = _beside(path)
    # Not `tempfile`, whose files only their owner may read. Always a new file, and no link's target.
    file = open(beside, "xb")  # noqa: SIM115
    try:
        with file:
            _hold(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # there, no open file can be renamed
            os.replace(beside, path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            # A full disk does not say where.
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a hidden folder beside `path`, which is removed unless it has been renamed."""
    beside = _beside(path)
    beside.mkdir()
    held = None if fcntl is None else os.open(beside, os.O_RDONLY)
    try:
        if held is not None:
            _hold(held)
        yield beside
    finally:
        if held is not None:
            os.close(held)
        shutil.rmtree(beside, ignore_errors=True)


def _beside(path: Path) -> Path:
    """Return a hidden name that nothing has, after what dead processes left under such names is removed.

    What is a link, is young, or is still written to stays.
    """
    # Short, since names may not be as long as one likes.
    start = f".{path.name[-50:]}."
    beside = path.with_name(f"{start}{secrets.token_hex(4)}{SUFFIX}")
    for name in os.listdir(beside.parent) if fcntl else ():
        if len(name) == len(beside.name) and name.startswith(start) and name.endswith(SUFFIX):
            with suppress(OSError):
                _sweep(beside.with_name(name))
    return beside


def _hold(descriptor: int) -> None:
    """Lock an open file or folder until it is closed, where the file system can."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _sweep(left: Path) -> None:
    """Remove a file or a folder unless a process holds it."""
    assert fcntl is not None
    held = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between its making and its lock, a new one looks like one that was left.
        if time.time() - os.fstat(held).st_ctime > YOUNG:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    finally:
        os.close(held)
