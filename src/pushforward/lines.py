"""Lines of a stranger's text file, one at a time: however large the file, memory holds one line of it."""

from collections.abc import Iterator
from pathlib import Path

from pushforward.container import BadFileError

MAX_LINE = 2**16
"""Bytes. Parsed, hostile JSON takes twenty times its length; so no line may be long."""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1, or raise a `BadFileError` that names the line."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise BadFileError(f"{path}, line {number}: no line may be longer than {MAX_LINE:,} bytes.")
            try:
                yield number, line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BadFileError(f"{path}, line {number}: corrupted, not text ({error}).") from None
