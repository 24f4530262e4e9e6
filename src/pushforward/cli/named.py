"""Draws as `pushforward sample` writes them: named and constrained, or as points of R^dim, block by block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from pushforward.cli.errors import CommandError
from pushforward.cli.part import Wanted
from pushforward.cli.writers import Write, check_space, writer

if TYPE_CHECKING:
    from pushforward.sampler import Sampler

WHOLE = (".npz", ".nc")
"""Formats that are written in one piece, from memory."""

MAX_WHOLE = 2**32
"""Bytes of draws that may be held for them."""


def _checked(wanted: Wanted, sampler: "Sampler") -> tuple[tuple[int, int], np.dtype]:
    """Return how many draws of how many numbers are written, and their type, if the disk can hold them."""
    numbers, dtype = sampler.dim, np.dtype(sampler.frame.centre.dtype)
    if sampler.parameters is not None and not wanted.free:
        numbers = sum(int(np.prod(item.shape, dtype=int)) for item in sampler.parameters.items)
    check_space(wanted.out, (wanted.total, numbers), dtype)
    return (wanted.total, numbers), dtype


def check_memory(wanted: Wanted, sampler: "Sampler") -> None:
    """Refuse to hold more draws in memory than there should be."""
    (count, numbers), _ = _checked(wanted, sampler)
    if wanted.out.suffix in WHOLE and 16 * count * numbers > MAX_WHOLE:
        raise CommandError(
            f"--out: {count:,} named draws of {numbers} numbers are too many for {wanted.out.suffix}, which "
            "is written in one piece. Choose .npy, .parquet or .csv, which are not."
        )


@contextmanager
def named_writer(wanted: Wanted, sampler: "Sampler") -> Iterator[Write]:
    """Yield a function that appends blocks of free coordinates, constrained if they have names."""
    from pushforward.draws.plain_files import structured
    from pushforward.draws.table_files import columns

    out, (shape, dtype) = wanted.out, _checked(wanted, sampler)
    parameters = sampler.parameters
    if wanted.free or parameters is None:
        with writer(out, shape, dtype) as write:
            yield write
        return

    def constrained(block: np.ndarray) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            return parameters.constrain(np.ascontiguousarray(block, dtype))

    example = constrained(np.zeros((1, parameters.dim), dtype))
    if out.suffix == ".npy":
        with writer(out, shape[:1], structured(example).dtype) as write:
            yield lambda block: write(structured(constrained(block)))
        return
    with writer(out, shape, dtype, list(columns(example))) as write:
        yield lambda block: write(np.stack(list(columns(constrained(block)).values()), axis=1))
