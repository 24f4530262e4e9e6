"""Draws to a file, block by block: memory stays bounded, and the name appears only when the file is whole."""

import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pushforward.arrays import write_npy_header
from pushforward.atomic import check_place, replacing
from pushforward.cli.console import size
from pushforward.cli.errors import CommandError

if TYPE_CHECKING:
    from pushforward.sampler import Sampler

Write = Callable[[np.ndarray], None]
Shape = tuple[int, ...]

Bar = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""What makes a progress bar of so many draws, which yields a function that moves it on."""

CSV_WIDTH = 14  # about how many characters a number takes as text, its comma included
Names = list[str] | None  # titles of the columns, in formats that have them; x0, x1, ... otherwise

WHOLE, MAX_WHOLE = (".npz", ".nc"), 2**32
"""Formats that hold named draws in one piece, and bytes that may be held to write it."""


class Wanted(NamedTuple):
    """The draws that were asked for, and the file for them."""

    out: Path
    total: int
    seed: int
    latents: str
    free: bool


@contextmanager
def _npy(file: Any, shape: Shape, dtype: np.dtype, names: Names) -> Iterator[Write]:
    write_npy_header(file, dtype, shape)
    # As bytes, which a structured array does not show of itself.
    yield lambda block: file.write(np.ascontiguousarray(block, dtype).view(np.uint8).data)


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
    from pushforward.draws.table_files import coordinate_titles, write_rows, write_titles

    write_titles(file, names or coordinate_titles(shape[1]))
    yield lambda block: write_rows(file, np.asarray(block, dtype))


@contextmanager
def _parquet(file: Any, shape: Shape, dtype: np.dtype, names: Names) -> Iterator[Write]:
    from pushforward.draws.table_files import import_pyarrow

    pyarrow, parquet = import_pyarrow()
    titles = names or [f"x[{i}]" for i in range(shape[1])]
    schema = pyarrow.schema([(title, pyarrow.from_numpy_dtype(dtype)) for title in titles])
    with parquet.ParquetWriter(file, schema) as table:
        yield lambda block: table.write_table(
            pyarrow.table([*map(np.ascontiguousarray, block.T)], schema=schema)
        )


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


def check_draws(wanted: Wanted, sampler: "Sampler", *, whole: bool) -> None:
    """Refuse draws that the disk cannot hold, or the memory where they are written as a whole."""
    numbers, count = sampler.dim, wanted.total
    if sampler.parameters is not None and not wanted.free:
        numbers = sum(int(np.prod(item.shape, dtype=int)) for item in sampler.parameters.items)
    check_space(wanted.out, (count, numbers), np.dtype(sampler.frame.centre.dtype))
    if whole and wanted.out.suffix in WHOLE and 16 * count * numbers > MAX_WHOLE:
        raise CommandError(
            f"--out: {count:,} named draws of {numbers} numbers are too many for {wanted.out.suffix}, which "
            "is written in one piece. Choose .npy, .parquet or .csv, which are not."
        )


@contextmanager
def writer(path: Path, shape: Shape, dtype: np.dtype, names: Names = None) -> Iterator[Write]:
    """Yield a function that appends blocks of rows; whatever goes wrong, no half-written file is left."""
    with replacing(path) as file, FORMATS[path.suffix](file, shape, dtype, names) as write:
        yield write


@contextmanager
def named_writer(wanted: Wanted, sampler: "Sampler") -> Iterator[Write]:
    """Yield a function that appends blocks of free coordinates, constrained if they have names."""
    from pushforward.draws.contents import columns
    from pushforward.draws.plain_files import structured

    shape, dtype = (wanted.total, sampler.dim), np.dtype(sampler.frame.centre.dtype)
    parameters = None if wanted.free else sampler.parameters
    if parameters is None:
        with writer(wanted.out, shape, dtype) as write:
            yield write
        return

    def constrained(block: np.ndarray) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            return parameters.constrain(np.ascontiguousarray(block, dtype))

    example = constrained(np.zeros((1, parameters.dim), dtype))
    if wanted.out.suffix == ".npy":
        with writer(wanted.out, shape[:1], structured(example).dtype) as write:
            yield lambda block: write(structured(constrained(block)))
        return
    with writer(wanted.out, shape, dtype, list(columns(example))) as write:
        yield lambda block: write(np.stack(list(columns(constrained(block)).values()), axis=1))
