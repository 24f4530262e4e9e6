"""The study's rows, in the order in which they matter: references first, since others stand beside them."""

import zlib
from typing import NamedTuple

import jax
from jaxtyping import Array, Key

from pushforward.records import Record
from pushforward.studies.covertype.settings import NOISE, SLOW, STAGES, Settings

DONE = "row_seconds"
"""The last record of a row, so that a row without it was cut short."""


class Row(NamedTuple):
    """One method on one split of the data: what is run, recorded and resumed as a whole."""

    method: str
    target: str
    split: int

    def __str__(self) -> str:
        return f"{self.method} {self.target} {self.split}"

    def key(self, purpose: str) -> Key[Array, ""]:
        """Return a key of this row's own, the same in every run."""
        return jax.random.fold_in(jax.random.key(self.split), zlib.crc32(f"{self}/{purpose}".encode()))


def rows(settings: Settings) -> list[Row]:
    """Return all rows, stage by stage and in each split by split."""
    return [
        Row(method, target, number)
        for target in settings.targets
        for stage in STAGES
        for number in range(settings.splits)
        for method in stage
        if method in settings.methods and number < splits_of(method, settings)
    ]


def splits_of(method: str, settings: Settings) -> int:
    """Return on how many splits a method is run."""
    if method in SLOW:
        return min(settings.slow_splits, settings.splits)
    return 1 if method in NOISE else settings.splits


def finished(records: list[Record]) -> set[Row]:
    """Return the rows that were recorded to their end."""
    return {row_of(r) for r in records if r.metric == DONE}


def row_of(record: Record) -> Row:
    """Return the row a record came from."""
    return Row(record.method, record.target, record.seed or 0)
