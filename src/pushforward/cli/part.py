"""`sample --shard K/N`: one part of a set of draws, made where it is wanted, joined later."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from pushforward.cli.errors import CommandError

if TYPE_CHECKING:
    from pushforward.sampler import Sampler


Bar = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""What makes a progress bar of so many draws, which yields a function that moves it on."""


class Wanted(NamedTuple):
    """The draws that were asked for, and the file for them."""

    out: Path
    total: int
    seed: int
    latents: str
    free: bool


@dataclass(frozen=True)
class Part:
    """Part `number` of `count`, as typed: `2/7` is the second of seven."""

    number: int
    count: int

    def rows(self, total: int) -> tuple[int, int]:
        """Return the first row and how many: parts differ by one row at most, and leave none out."""
        first = total * (self.number - 1) // self.count
        return first, total * self.number // self.count - first

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_part(text: str) -> Part:
    """Read `2/7`, or say what is wrong with it."""
    match = re.fullmatch(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*", text)
    if match is None:
        raise typer.BadParameter(f"must be K/N, such as 2/7 for the second of seven parts; got {text!r}.")
    part = Part(int(match[1]), int(match[2]))
    if not 1 <= part.number <= part.count:
        raise typer.BadParameter(f"must be K/N with K between 1 and N; got {text!r}.")
    return part


def check_part(part: Part, out: Path, total: int, *, force: bool) -> None:
    """Refuse a part that cannot be made or joined, before any work is done."""
    from pushforward.cli.shards import note_path

    if out.suffix != ".npy":
        raise CommandError(
            f"--out must end in .npy with --shard, since parts are plain arrays; got {out.name!r}. "
            "`pushforward join` writes any format."
        )
    if part.count > total:
        raise CommandError(
            f"--shard must have at most as many parts as there are draws; got {part} for {total:,} draws."
        )
    if note_path(out).exists() and not force:
        raise CommandError(f"--out: {note_path(out)} exists. Choose another name, or overwrite with --force.")


def write_part(part: Part, source: Path, sampler: "Sampler", wanted: Wanted, bar: Bar) -> str:
    """Write one part and its note, and say so."""
    import jax
    import numpy as np

    from pushforward.atomic import replacing
    from pushforward.cli.shards import Note, file_sha256, hashing, note_path
    from pushforward.cli.writers import check_space, writer
    from pushforward.runs.layout import SAMPLER

    out, total, seed, latents, _ = wanted
    checksum = file_sha256(source / SAMPLER if source.is_dir() else source)
    first, rows = part.rows(total)
    shape, dtype = (rows, sampler.dim), np.dtype(sampler.frame.centre.dtype)
    check_space(out, shape, dtype)
    with (
        # Latents of twice the digits would be other points.
        jax.enable_x64(dtype == np.float64),
        # Renamed one after the other, and the old ones stay until both are whole.
        replacing(note_path(out)) as words,
        bar(rows) as advance,
        writer(out, shape, dtype) as write,
    ):
        write, digest = hashing(write, dtype)
        for block in sampler.stream(jax.random.key(seed), rows, latents=latents, start=first):
            write(block)
            advance(len(block))
        note = Note(first, rows, total, sampler.dim, str(dtype), seed, latents, checksum, digest.hexdigest())
        words.write(note.text())
    return f"part {part} of {total:,} draws in {out}, for `pushforward join`"
