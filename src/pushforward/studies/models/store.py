"""What the study leaves beside its records: chains and fitted samplers, in a hidden folder."""

import json
from pathlib import Path

import numpy as np

from pushforward import files
from pushforward.arrays import read_npz
from pushforward.sampler import Sampler, load
from pushforward.studies.models.rows import Row


class Store:
    """`.models_samplers` in a folder of results: nothing in it is published, all of it can be made again."""

    def __init__(self, folder: Path):
        """Open the store of a results folder."""
        self.folder = folder / ".models_samplers"

    def clear(self) -> None:
        """Forget the samplers: a new file of records begins. Chains stay, since no fit has touched them."""
        for path in self.folder.glob("*.pf"):
            path.unlink()

    def keep(self, row: Row, steps: int | None, sampler: Sampler, figures: dict[str, float]) -> None:
        """Keep a fitted sampler and what it cost."""
        self.folder.mkdir(parents=True, exist_ok=True)
        about = json.dumps({**sampler.about, "study_figures": figures, "study_steps": steps})
        kept = Sampler(sampler.latent, sampler.network, sampler.frame, about, sampler.parameters)
        kept.save(self._path(row))

    def sampler(self, row: Row, steps: int | None) -> Sampler | None:
        """Return the kept sampler of a row, if one can be read that was trained for so many steps."""
        try:
            kept = load(self._path(row))
        except (OSError, files.BadFileError):
            return None
        return kept if kept.about.get("study_steps", 0) == steps else None

    def keep_chains(self, model: str, how: str, arrays: dict[str, np.ndarray]) -> None:
        """Keep chains, under the settings they were made with."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._chains(model, how)
        beside = path.with_suffix(".part.npz")
        np.savez(beside, **arrays)  # pyright: ignore[reportArgumentType]
        beside.replace(path)

    def chains(self, model: str, how: str) -> dict[str, np.ndarray] | None:
        """Return chains made with these settings."""
        path = self._chains(model, how)
        return read_npz(path) if path.exists() else None

    def _chains(self, model: str, how: str) -> Path:
        return self.folder / f"chains-{model}-{how}.npz"

    def _path(self, row: Row) -> Path:
        return self.folder / f"{row.method}-{row.target}-{row.seed}.pf"
