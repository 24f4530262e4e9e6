"""What the study leaves beside its records: moments, curves and calibration for figures, half-done rows."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from pushforward.training.checkpoint import Checkpoint

from reproduce.studies.row import Row


class Store:
    """A folder of results: `covertype_draws.npz` for the report and for rows that need the reference."""

    def __init__(self, folder: Path):
        """Open the store of a results folder."""
        self.arrays_path = folder / "covertype_draws.npz"
        self.pieces = folder / ".covertype_samplers"

    def clear(self) -> None:
        """Forget everything: a new file of records begins."""
        self.arrays_path.unlink(missing_ok=True)
        shutil.rmtree(self.pieces, ignore_errors=True)

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        """Add arrays, replacing those of the same name; the file is replaced once it is complete."""
        _save(self.arrays_path, self.arrays() | arrays)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays."""
        return _load(self.arrays_path) or {}

    def array(self, name: str) -> np.ndarray | None:
        """Return one of the arrays, if it is there."""
        return self.arrays().get(name)

    def keep_piece(self, row: Row, arrays: dict[str, np.ndarray]) -> None:
        """Keep a half-done row, so that an interruption costs a piece of it and not the whole."""
        _save(self._piece(row), arrays)

    def piece(self, row: Row) -> dict[str, np.ndarray] | None:
        """Return what is kept of a half-done row."""
        return _load(self._piece(row))

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

    def _piece(self, row: Row) -> Path:
        return self.pieces / f"{row.method}-{row.target}-{row.seed}.npz"


def _save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part.npz")
    np.savez_compressed(beside, **arrays)  # pyright: ignore[reportArgumentType]
    beside.replace(path)


def _load(path: Path) -> dict[str, np.ndarray] | None:
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as held:
        return {name: held[name] for name in held.files}
