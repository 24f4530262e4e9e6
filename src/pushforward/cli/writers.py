"""Draws to a file, block by block: memory stays bounded, and the name appears only when the file is whole."""

import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pushforward.atomic import check_place, replacing
from pushforward.cli.console import size
from pushforward.cli.errors import CommandError

Write = Callable[[np.ndarray], None]
Shape = tuple[int, ...]

CSV_WIDTH = 14
"""About how many characters a number takes as text, its comma included."""

Names = list[str] | None
"""Titles of the columns, in formats that have them; x0, x1, ... otherwise."""


@contextmanager
def _npy(file: Any, shape: Shape, dtype: np.dtype, names: Names) -> Iterator[Write]:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)

    def write(block: np.ndarray) -> None:
        # As bytes, which a structured array does not show of itself.
        file.write(np.ascontiguousarray(block, dtype).view(np.uint8).data)

    yield write


@contextmanager
def _npz(file: Any, shape: Shape, dtype: np.dtype, names: Names) -> Iterator[Write]:
    with (
        zipfile.ZipFile(file, "w") as archive,
        archive.open("draws.npy", "w", force_zip64=True) as member,
        _npy(member, shape, dtype, names) as write,
    ):
        yield write


@contextmanager
def _csv(file: Any, shape: Shape, dtype: np.dtype, names: Names) -> Iterator[Write]:
    from pushforward.draws.text_files import coordinate_titles, write_rows, write_titles

    write_titles(file, names or coordinate_titles(shape[1]))
    yield lambda block: write_rows(file, np.asarray(block, dtype))


@contextmanager
def _parquet(file: Any, shape: Shape, dtype: np.dtype, names: Names) -> Iterator[Write]:
    from pushforward.draws.table_files import import_pyarrow

    pyarrow, parquet = import_pyarrow()
    titles = names or [f"x[{i}]" for i in range(shape[1])]
    schema = pyarrow.schema([(title, pyarrow.from_numpy_dtype(dtype)) for title in titles])
    with parquet.ParquetWriter(file, schema) as table:

        def write(block: np.ndarray) -> None:
            columns = [np.ascontiguousarray(column) for column in block.T]
            table.write_table(pyarrow.table(columns, schema=schema))

        yield write


FORMATS: dict[str, Callable[[Any, Shape, np.dtype, Names], AbstractContextManager[Write]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
}


def check_file(path: Path, *, force: bool, more: tuple[str, ...] = ()) -> None:
    """Refuse a name that cannot or should not be written, before any work is done."""
    if path.suffix not in (*FORMATS, *more):
        raise CommandError(f"--out must end in {', '.join((*FORMATS, *more))}; got {path.name!r}.")
    try:
        check_place(path)
    except OSError as error:
        raise CommandError(str(error).replace("`path`", "--out", 1)) from None
    if path.exists() and not force:
        raise CommandError(f"--out: {path} exists. Choose another name, or overwrite with --force.")


def check_space(path: Path, shape: Shape, dtype: np.dtype) -> None:
    """Refuse what the disk cannot hold: better now than after an hour."""
    each = CSV_WIDTH if path.suffix == ".csv" else dtype.itemsize
    wanted = shape[0] * shape[1] * each + 4096
    free = shutil.disk_usage(path.absolute().parent).free
    if wanted > free:
        raise CommandError(
            f"--out: {shape[0]:,} draws need about {size(wanted)}; {size(free)} are free in "
            f"{path.absolute().parent}. Ask for fewer, or write to another disk."
        )


@contextmanager
def writer(path: Path, shape: Shape, dtype: np.dtype, names: Names = None) -> Iterator[Write]:
    """Yield a function that appends blocks of rows; whatever goes wrong, no half-written file is left."""
    with replacing(path) as file, FORMATS[path.suffix](file, shape, dtype, names) as write:
        yield write
