"""`pushforward join`: put the parts of `sample --shard` together, once they are known to be one set."""

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pushforward.arrays import npy_header
from pushforward.cli import options
from pushforward.cli.console import wrote
from pushforward.cli.shards import Note, read_note
from pushforward.cli.writers import check_file, check_space, writer
from pushforward.container import BadFileError

BLOCK_BYTES = 2**22


def join(
    parts: options.Parts, out: options.Out, force: options.Force = False, quiet: options.Quiet = False
) -> None:
    """Join the parts that [bold]sample --shard K/N[/bold] wrote on one machine or on many.

    The result is byte for byte the file that one machine would have written. Every part is checked: same
    sampler, same seed, no rows missing or double, and a checksum over its draws. Memory stays bounded,
    and the file appears only when all of it is right.

    [bold]Example[/bold]
      pushforward sample runs/rosenbrock -n 1e9 --shard 2/7 --out part-2.npy      (on machine 2 of 7)
      pushforward join part-*.npy --out draws.npy
    """
    check_file(out, force=force)
    ordered = check_set(parts)
    if out.absolute() in (path.absolute() for path, _ in ordered):
        raise ValueError(f"--out must not be one of the parts; got {out}.")
    about = ordered[0][1]
    shape, dtype = (about.total, about.dim), np.dtype(about.dtype)
    check_space(out, shape, dtype)
    started = time.monotonic()
    with writer(out, shape, dtype) as write:
        for path, part in ordered:
            for block in read_blocks(path, part):
                write(block)
    if not quiet:
        words = f"{about.total:,} draws of {about.dim} coordinates from {len(ordered)} parts in {out}"
        wrote(words, out, started)


def check_set(parts: list[Path]) -> list[tuple[Path, Note]]:
    """Return the parts in the order of their rows, or say why they are not one whole set of draws."""
    for path in parts:
        if not path.is_file():
            raise FileNotFoundError(f"PART must name a file of `sample --shard`; there is no file {path}.")
    ordered = sorted(((path, read_note(path)) for path in parts), key=lambda pair: pair[1].first)
    first_path, first = ordered[0]
    for path, part in ordered[1:]:
        for name in ("sampler_sha256", "seed", "total", "latents", "dim", "dtype"):
            if getattr(part, name) != getattr(first, name):
                raise BadFileError(
                    f"{path} and {first_path} are parts of different draws: `{name}` is "
                    f"{getattr(part, name)} in one and {getattr(first, name)} in the other."
                )
    starts = [*(part.first for _, part in ordered), first.total]
    ends = [0, *(part.first + part.rows for _, part in ordered)]
    for (before, _), (path, part), end in zip(ordered, ordered[1:], ends[1:], strict=False):
        if part.first < end:
            raise BadFileError(
                f"{path} and {before} overlap: both hold row {part.first:,}. Give each part once."
            )
    if missing := [f"{a:,} to {b - 1:,}" for a, b in zip(ends, starts, strict=True) if a < b]:
        ranges = ", ".join(missing[:5])
        raise BadFileError(
            f"rows {ranges} of {first.total:,} are in none of the parts. Give the parts that hold them, or "
            "make them with `pushforward sample --shard K/N`."
        )
    return ordered


def read_blocks(path: Path, part: Note) -> Iterator[np.ndarray]:
    """Yield a part's rows in bounded memory; a checksum that does not match is an error at the end."""
    dtype, digest = np.dtype(part.dtype), hashlib.sha256()
    rows_at_once = max(1, BLOCK_BYTES // (part.dim * dtype.itemsize))
    with path.open("rb") as file:
        header = npy_header(file, path)
        if header.shape != (part.rows, part.dim) or header.dtype != dtype or header.fortran:
            raise BadFileError(
                f"{path} must hold {part.rows:,} rows of {part.dim} coordinates as {part.dtype}, by its "
                f"note; it holds {header.dtype} of shape {header.shape}. Draw this part again."
            )
        # The header has been held against the size of the file: what follows it are these rows.
        while data := file.read(rows_at_once * part.dim * dtype.itemsize):
            digest.update(data)
            yield np.frombuffer(data, dtype).reshape(-1, part.dim)
    if digest.hexdigest() != part.draws_sha256:
        raise BadFileError(f"{path} is corrupted: its checksum does not match. Draw this part again.")
