"""Draws as `pushforward sample` writes them: named and constrained, or as points of R^dim, block by block."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pushforward.cli.errors import CommandError
from pushforward.cli.writers import Write, check_space, writer

if TYPE_CHECKING:
    from pushforward.sampler import Sampler

WHOLE = (".npz", ".nc")
"""Formats that are written in one piece, from memory."""

MAX_WHOLE = 2**32
"""Bytes of draws that may be held for them."""


def width(sampler: "Sampler", *, free: bool) -> int:
    """Return how many numbers a draw has as it is written."""
    if free or sampler.parameters is None:
        return sampler.dim
    return sum(int(np.prod(item.shape, dtype=int)) for item in sampler.parameters.items)


def check_memory(out: Path, num_samples: int, sampler: "Sampler", *, free: bool) -> None:
    """Refuse to hold more draws in memory than there should be, or to write more than the disk can hold."""
    numbers = width(sampler, free=free)
    check_space(out, (num_samples, numbers), np.dtype(sampler.frame.centre.dtype))
    if out.suffix in WHOLE and 16 * num_samples * numbers > MAX_WHOLE:
        raise CommandError(
            f"--out: {num_samples:,} named draws of {numbers} numbers are too many for {out.suffix}, which "
            "is written in one piece. Choose .npy, .parquet or .csv, which are not."
        )


@contextmanager
def named_writer(out: Path, count: int, sampler: "Sampler", *, free: bool) -> Iterator[Write]:
    """Yield a function that appends blocks of free coordinates, constrained if they have names."""
    from pushforward.draws.plain_files import structured
    from pushforward.draws.table_files import columns

    dtype, shape = np.dtype(sampler.frame.centre.dtype), (count, width(sampler, free=free))
    check_space(out, shape, dtype)
    parameters = sampler.parameters
    if free or parameters is None:
        with writer(out, shape, dtype) as write:
            yield write
        return

    def constrained(block: np.ndarray) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            return parameters.constrain(np.ascontiguousarray(block, dtype))

    example = constrained(np.zeros((1, parameters.dim), dtype))
    if out.suffix == ".npy":
        with writer(out, (count,), structured(example).dtype) as write:
            yield lambda block: write(structured(constrained(block)))
        return
    with writer(out, shape, dtype, list(columns(example))) as write:
        yield lambda block: write(np.stack(list(columns(constrained(block)).values()), axis=1))
