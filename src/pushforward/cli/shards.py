"""`sample --shard K/N`: one part of a set of draws, and the note beside it that `pushforward join` reads.

Draw `i` depends on the key and `i` alone, so machines that know nothing of each other can make one set of
draws together. Each writes a plain `.npy` file and, as `FILE.json`, what tells a whole set from a heap of
files: rows, seed, the sampler's checksum, and the draws' own.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from pushforward.cli.errors import CommandError
from pushforward.cli.writers import Bar, Wanted, check_space, writer
from pushforward.container import SAMPLER, BadFileError

if TYPE_CHECKING:
    from pushforward.sampler import Sampler

FORMAT, VERSION = "pushforward-shard", 1
MAX_BYTES = 2**16  # no honest note is larger; a stranger's shall not fill the memory
MAX_ROWS = 2**41  # rows that one key can number: 2^31 groups of 1,024

LIMITS = {
    "first": (0, MAX_ROWS), "rows": (1, MAX_ROWS), "total": (1, MAX_ROWS),
    "dim": (1, 2**31), "seed": (0, 2**32),
}  # fmt: skip
CHOICES = {"dtype": ("float32", "float64"), "latents": ("iid", "sobol")}


@dataclass(frozen=True)
class Part:
    """Part `number` of `count`, as typed: `2/7` is the second of seven."""

    number: int
    count: int

    @staticmethod
    def parse(text: str) -> "Part":
        """Read `2/7`, or say what is wrong with it."""
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*", text)
        if match is None:
            raise typer.BadParameter(f"must be K/N, such as 2/7 for the second of seven parts; got {text!r}.")
        part = Part(int(match[1]), int(match[2]))
        if not 1 <= part.number <= part.count:
            raise typer.BadParameter(f"must be K/N with K between 1 and N; got {text!r}.")
        return part

    def rows(self, total: int) -> tuple[int, int]:
        """Return the first row and how many: parts differ by one row at most, and leave none out."""
        first = total * (self.number - 1) // self.count
        return first, total * self.number // self.count - first

    def check(self, wanted: Wanted, *, force: bool) -> None:
        """Refuse a part that cannot be made or joined, before any work is done."""
        if wanted.out.suffix != ".npy":
            raise CommandError(
                f"--out must end in .npy with --shard, as parts are plain arrays; got {wanted.out.name!r}. "
                "`pushforward join` writes any format."
            )
        if self.count > wanted.total:
            raise CommandError(
                f"--shard must have at most as many parts as there are draws; got {self.number}/{self.count} "
                f"for {wanted.total:,} draws."
            )
        if (note := note_path(wanted.out)).exists() and not force:
            raise CommandError(f"--out: {note} exists. Choose another name, or overwrite with --force.")

    def write(self, source: Path, sampler: "Sampler", wanted: Wanted, bar: Bar) -> str:
        """Write the part and its note, and say so."""
        import jax

        from pushforward.atomic import replacing

        out, total, seed, latents, _ = wanted
        with (source / SAMPLER if source.is_dir() else source).open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        first, rows = self.rows(total)
        shape, dtype, digest = (rows, sampler.dim), np.dtype(sampler.frame.centre.dtype), hashlib.sha256()
        check_space(out, shape, dtype)
        with (
            # Latents of twice the digits would be other points.
            jax.enable_x64(dtype == np.float64),
            # Renamed one after the other, and the old ones stay until both are whole.
            replacing(note_path(out)) as words,
            bar(rows) as advance,
            writer(out, shape, dtype) as write,
        ):
            for block in sampler.stream(jax.random.key(seed), rows, latents=latents, start=first):
                block = np.ascontiguousarray(block, dtype)
                digest.update(block.data)
                write(block)
                advance(len(block))
            found = (str(dtype), seed, latents, checksum, digest.hexdigest())
            words.write(Note(first, rows, total, sampler.dim, *found).text())
        return f"part {self.number}/{self.count} of {total:,} draws in {out}, for `pushforward join`"


@dataclass(frozen=True)
class Note:
    """What stands beside a part: which rows of which draws it holds."""

    first: int
    rows: int
    total: int
    dim: int
    dtype: str
    seed: int
    latents: str
    sampler_sha256: str  # of the sampler's file
    draws_sha256: str  # of the rows' bytes, in C order

    def text(self) -> bytes:
        """Return the note as a file holds it."""
        text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2)
        return (text + "\n").encode()


def note_path(path: Path) -> Path:
    """Return where the note of the part at `path` stands."""
    return path.with_name(path.name + ".json")


def read_note(path: Path) -> Note:
    """Read the note beside the part at `path`, or raise a `BadFileError` that says what is wrong."""
    from pushforward.runs.reading import read_object

    beside = note_path(path)
    if not beside.is_file():
        raise BadFileError(
            f"{path} has no note {beside.name} beside it, so it is not known which draws it holds. "
            "Parts come from `pushforward sample --shard K/N`; copy both files of each."
        )
    data = read_object(beside, MAX_BYTES, "a part of draws", FORMAT, VERSION)
    data = {name: value for name, value in data.items() if name not in ("format", "version")}
    if odd := data.keys() ^ {field.name for field in fields(Note)}:
        words = ", ".join(sorted(odd)[:5])
        raise BadFileError(f"{beside} does not describe a part of draws: missing or unknown {words}.")
    for name, value in data.items():
        if name in LIMITS:
            least, most = LIMITS[name]
            good, wanted = type(value) is int and least <= value <= most, f"a whole number to {most:,}"
        elif name in CHOICES:
            good, wanted = value in CHOICES[name], f"one of {', '.join(CHOICES[name])}"
        else:
            good = isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value)
            wanted = "a checksum of 64 hexadecimal digits"
        if not good:
            raise BadFileError(f"{beside}: {name!r} must be {wanted}.")
    note = Note(**data)
    if note.first + note.rows > note.total:
        raise BadFileError(f"{beside}: its rows end after the last of {note.total:,}.")
    return note
