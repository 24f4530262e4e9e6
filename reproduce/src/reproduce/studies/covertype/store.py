"""What the study leaves beside its records: moments, curves and calibration for figures, half-done rows."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pushforward.run.checkpoint import Checkpoint
from reproduce.studies.row import Row
from reproduce.studies.store import Beside, Figures


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
