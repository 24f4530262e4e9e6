"""A row of a study: what is run, recorded and resumed as a whole; and how it asks for draws."""

import zlib
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
from jaxtyping import Array, Float, Key

from reproduce.records import Record

DONE = "row_seconds"  # the last record of a row, so that a row without it was cut short


class Row(NamedTuple):
    """One method on one target with one seed: of training, of a census, or of a split of the data."""

    method: str
    target: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method} {self.target} {self.seed}"

    def key(self, purpose: str) -> Key[Array, ""]:
        """Return a key of this row's own, the same in every run."""
        return jax.random.fold_in(jax.random.key(self.seed), zlib.crc32(f"{self}/{purpose}".encode()))


def row_of(record: Record) -> Row:
    """Return the row that a record came from, where records are told by their method."""
    return Row(record.method, record.target, record.seed or 0)


def finished(records: list[Record]) -> set[Row]:
    """Return the rows that were recorded to their end."""
    return {row_of(record) for record in records if record.metric == DONE}


def counted(rows: list[Row]) -> list[str]:
    """Return for a reader how many rows each method has."""
    return [f"{method}: {number} rows" for method, number in Counter(row.method for row in rows).items()]


Draw: TypeAlias = Callable[[Key[Array, ""], int], Float[Array, "n dim"]]  # `draw(key, n)`: draws of a method


def from_pool(pool: Float[Array, "m dim"]) -> Draw:
    """Return `draw(key, n)`: a random choice from a fixed set, without repeats."""

    def draw(key: Key[Array, ""], n: int) -> Float[Array, "n dim"]:
        return pool[jax.random.permutation(key, pool.shape[0])[:n]]

    return draw
