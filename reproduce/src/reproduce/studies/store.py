"""What a study keeps beside its records: fitted samplers and reference draws, in a hidden folder."""

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pushforward import files
from pushforward.arrays import read_npz
from pushforward.recipe.methods import Method
from pushforward.sampler import Sampler, load
from reproduce.data.folders import write_npz
from reproduce.studies.row import Row


class Figures:
    """Arrays for the figures of a report: one file of NumPy's, replaced once the new one is complete."""

    def __init__(self, path: Path):
        """Open the file; it need not be there yet."""
        self.path = path

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        """Add arrays, replacing those of the same name."""
        write_npz(self.path, self.arrays() | arrays, compressed=True)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays."""
        return read_npz(self.path) if self.path.exists() else {}

    def array(self, name: str) -> np.ndarray | None:
        """Return one of the arrays, if it is there."""
        return self.arrays().get(name)


class Beside(Figures):
    """What a study leaves beside its records: arrays for figures, and a hidden folder."""

    study: ClassVar[str]

    def __init__(self, folder: Path):
        """Open both in a folder of results."""
        super().__init__(folder / f"{self.study}_draws.npz")
        self.pieces = folder / f".{self.study}_samplers"

    def clear(self) -> None:
        """Forget everything: a new file of records begins."""
        self.path.unlink(missing_ok=True)
        shutil.rmtree(self.pieces, ignore_errors=True)


class Store:
    """`.STUDY_samplers` in a folder of results: nothing in it is published, all of it can be made again."""

    def __init__(self, folder: Path, study: str):
        """Open the store of a study in a results folder."""
        self.folder = folder / f".{study}_samplers"

    def clear(self) -> None:
        """Forget the samplers: a new file of records begins. References stay: no fit has touched them."""
        for path in self.folder.glob("*.pf"):
            path.unlink()

    def keep(self, row: Row, how: Method, sampler: Sampler, told: dict[str, Any]) -> None:
        """Keep a fitted sampler, for its rivals and after an interruption, and what is told of its fit."""
        self.folder.mkdir(parents=True, exist_ok=True)
        about = json.dumps({**sampler.about, **told, "study_recipe": how.recipe.digest()})
        kept = Sampler(sampler.latent, sampler.network, sampler.frame, about, sampler.parameters)
        kept.save(self._path(row))

    def sampler(self, row: Row, how: Method) -> Sampler | None:
        """Return the kept sampler of a row, if one can be read that was trained by this very recipe."""
        try:
            kept = load(self._path(row))
        except (OSError, files.BadFileError):
            return None
        return kept if kept.about.get("study_recipe") == how.recipe.digest() else None

    def keep_arrays(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Keep arrays under a name that says how they were made."""
        write_npz(self.folder / f"{name}.npz", arrays)

    def arrays(self, name: str) -> dict[str, np.ndarray] | None:
        """Return the arrays of that name, if they are there."""
        path = self.folder / f"{name}.npz"
        return read_npz(path) if path.exists() else None

    def _path(self, row: Row) -> Path:
        return self.folder / f"{row.method}-{row.target}-{row.seed}.pf"
