"""What the study leaves beside its records: reference draws and fitted samplers, in a hidden folder."""

import json
import shutil
from pathlib import Path

import numpy as np

from pushforward import files
from pushforward.arrays import read_npz
from pushforward.sampler import Sampler, load
from pushforward.studies.hard.rows import Row


class Store:
    """`.hard_samplers` in a folder of results: nothing in it is published, all of it can be made again."""

    def __init__(self, folder: Path):
        """Open the store of a results folder."""
        self.folder = folder / ".hard_samplers"

    def clear(self) -> None:
        """Forget the samplers: a new file of records begins. References stay, since they cost most."""
        for path in self.folder.glob("*.pf"):
            path.unlink()

    def clear_all(self) -> None:
        """Forget everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, row: Row, steps: int | None, sampler: Sampler, seconds: float) -> None:
        """Keep a fitted sampler and the seconds it took, for its rivals and after an interruption."""
        self.folder.mkdir(parents=True, exist_ok=True)
        about = json.dumps({**sampler.about, "study_seconds": seconds, "study_steps": steps})
        Sampler(sampler.latent, sampler.network, sampler.frame, about).save(self._path(row))

    def sampler(self, row: Row, steps: int | None) -> Sampler | None:
        """Return the kept sampler of a row, if one can be read that was trained for so many steps."""
        try:
            kept = load(self._path(row))
        except (OSError, files.BadFileError):
            return None
        return kept if kept.about.get("study_steps", 0) == steps else None

    def keep_reference(self, target: str, settings: str, arrays: dict[str, np.ndarray]) -> None:
        """Keep reference draws, under the settings they were made with."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._reference(target, settings)
        beside = path.with_suffix(".part.npz")
        np.savez(beside, **arrays)  # pyright: ignore[reportArgumentType]
        beside.replace(path)

    def reference(self, target: str, settings: str) -> dict[str, np.ndarray] | None:
        """Return reference draws made with these settings."""
        path = self._reference(target, settings)
        return read_npz(path) if path.exists() else None

    def _reference(self, target: str, settings: str) -> Path:
        return self.folder / f"reference-{target}-{settings}.npz"

    def _path(self, row: Row) -> Path:
        return self.folder / f"{row.method}-{row.target}-{row.seed}.pf"
