"""One split of the data, with all that its rows share, and what is kept beside the records."""

import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.run.checkpoint import Checkpoint
from reproduce.data import Covertype, Split, covertype, split, stand_in
from reproduce.rivals import laplace
from reproduce.studies.covertype.blocks import BlockedLogistic, in_blocks
from reproduce.studies.covertype.settings import Settings
from reproduce.studies.row import Row
from reproduce.studies.store import Beside, Figures
from reproduce.targets import BayesianLogisticRegression, ExpandedLogistic, expand
from reproduce.targets.logistic_mode import Peak

COPIES = 8  # copies of the training features that are alive at the same time, at worst, in single precision
PROGRAM_GB = 1.0  # what the libraries and the compiled programs take, whatever the data


class Case:
    """A split, and what is computed once for it."""

    def __init__(self, data: Covertype, target: str, number: int, settings: Settings):
        """Split and scale."""
        self.name, self.number, self.settings = target, number, settings
        self.split: Split = split(data.features, data.labels, number)
        self.target = BayesianLogisticRegression(
            self.split.features, self.split.labels, bias=target == "covertype", name=target
        )

    @cached_property
    def peak(self) -> Peak:
        """Where the posterior's mass is, around which everything but the Laplace row is computed."""
        return self.target.centre()

    @cached_property
    def centred(self) -> BayesianLogisticRegression:
        """The target, computed around its mode."""
        return self.target.centred(self.peak)

    @cached_property
    def blocked(self) -> BlockedLogistic:
        """The same, laid out for passes over all rows at a few points: what NUTS runs on."""
        return in_blocks(self.target, self.peak)

    @cached_property
    def frame(self) -> Frame:
        """The Laplace frame."""
        return laplace.frame(self.peak)

    @cached_property
    def expanded(self) -> ExpandedLogistic:
        """The target expanded at its mode."""
        return expand(self.target, self.peak)

    def in_frame(self, target: Target) -> InFrame:
        """Return a target as it looks in the Laplace frame."""
        return InFrame(target, self.frame)


def load(settings: Settings) -> Covertype:
    """Return the data: Covertype, or made data if so asked; refuse if the memory will not do."""
    if settings.stand_in_rows is not None:
        return stand_in(settings.stand_in_rows)
    data = covertype(settings.data)
    check_memory(data, settings)
    return data


def check_memory(data: Covertype, settings: Settings) -> None:
    """Refuse to start with less memory than the study takes on these data."""
    needed = PROGRAM_GB + COPIES * data.features.nbytes / 1e9
    if settings.memory_gb < needed:
        raise ValueError(
            f"`memory_gb` must be at least {needed:.1f} for {len(data.labels):,} rows; got "
            f"{settings.memory_gb:g}. Try the study on fewer rows with the preset `smoke`."
        )


def peak_memory_gb() -> float:
    """Return the most memory this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


class Store(Beside):
    """Figures for the report and for rows that need the reference; half-done rows."""

    study = "covertype"

    def keep_piece(self, row: Row, arrays: dict[str, np.ndarray]) -> None:
        """Keep a half-done row, so that an interruption costs a piece of it and not the whole."""
        self._piece(row).add(arrays)

    def piece(self, row: Row) -> dict[str, np.ndarray] | None:
        """Return what is kept of a half-done row."""
        return self._piece(row).arrays() or None

    @contextmanager
    def memory(self, row: Row, settings: dict[str, Any]) -> Iterator[Checkpoint]:
        """Yield the checkpoints of a row's training; every minute one, the last two kept."""
        folder = self.pieces / f"{row.method}-{row.target}-{row.seed}"
        kept = Checkpoint(folder, {"row": str(row), "settings": settings})
        try:
            yield kept
        finally:
            kept.close()

    def forget(self, row: Row) -> None:
        """Forget the training of a row that is recorded."""
        shutil.rmtree(self.pieces / f"{row.method}-{row.target}-{row.seed}", ignore_errors=True)

    def _piece(self, row: Row) -> Figures:
        return Figures(self.pieces / f"{row.method}-{row.target}-{row.seed}.npz")
