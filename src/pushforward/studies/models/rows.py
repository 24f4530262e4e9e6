"""The study's rows: the reference of a model, or one fit of it through one front end."""

import zlib
from typing import NamedTuple

import jax
from jaxtyping import Array, Key

from pushforward.records import Record
from pushforward.studies.models.cases import CASES, REFERENCE
from pushforward.studies.models.settings import STUDY, Settings

DONE = "row_seconds"
"""The last record of a row, so that a row without it was cut short."""


class Row(NamedTuple):
    """What is run, recorded and resumed as a whole."""

    method: str
    target: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method} {self.target} {self.seed}"

    def key(self, purpose: str) -> Key[Array, ""]:
        """Return a key of this row's own, the same in every run."""
        return jax.random.fold_in(jax.random.key(self.seed), zlib.crc32(f"{self}/{purpose}".encode()))


def rows(settings: Settings) -> list[Row]:
    """Return all rows: the references, one fit of every model, the other front ends, then the other seeds.

    Other front ends get one seed: the density is the same, and so would be the fit but for rounding.
    """
    found = [Row(REFERENCE, name, 0) for name in CASES]
    for seed in range(settings.seeds):
        found += [Row("numpyro", name, seed) for name in CASES]
        if seed == 0:
            found += [Row(front, name, 0) for name, case in CASES.items() for front in case.others]
    return [row for row in found if row.method in settings.methods and row.target in settings.targets]


def row_of(record: Record) -> Row:
    """Return the row a record came from."""
    return Row(record.method, record.target, record.seed or 0)


def finished(records: list[Record]) -> set[Row]:
    """Return the rows that were recorded to their end."""
    return {row_of(r) for r in records if r.metric == DONE}


def record_of(
    settings: Settings,
    row: Row,
    metric: str,
    value: float | int,
    *,
    n: int | None = None,
    floor: float | None = None,
) -> Record:
    """Return a record of one figure."""
    return Record(
        STUDY, settings.preset, row.method, row.target, metric, value, n=n, repeats=1, seed=row.seed,
        floor=floor,
    )  # fmt: skip
