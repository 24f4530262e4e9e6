"""What the study leaves beside its records: small sets of draws and curves for figures, kept samplers."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward import files
from pushforward.base import ExactTarget
from pushforward.sampler import Sampler, load
from pushforward.training import Settings as Recipe
from reproduce.studies.row import Row

DRAWS = 2000
GRID = 120


class Store:
    """A folder of results: `two_d_draws.npz` for the report, and a hidden folder of trained samplers."""

    def __init__(self, folder: Path):
        """Open the store of a results folder."""
        self.arrays_path = folder / "two_d_draws.npz"
        self.samplers = folder / ".two_d_samplers"

    def clear(self) -> None:
        """Forget everything: a new file of records begins."""
        self.arrays_path.unlink(missing_ok=True)
        shutil.rmtree(self.samplers, ignore_errors=True)

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        """Add arrays, replacing those of the same name; the file is replaced once it is complete."""
        held = {}
        if self.arrays_path.exists():
            with np.load(self.arrays_path) as old:
                held = {name: old[name] for name in old.files}
        beside = self.arrays_path.with_suffix(".part.npz")
        beside.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(beside, **(held | arrays))  # pyright: ignore[reportArgumentType]
        beside.replace(self.arrays_path)

    def array(self, name: str) -> np.ndarray:
        """Return one of the arrays."""
        with np.load(self.arrays_path) as held:
            return held[name]

    def add_draws(
        self, row: Row, draw: Callable[[Key[Array, ""], int], Float[Array, "n dim"]], n: int = DRAWS
    ) -> None:
        """Keep draws for a figure."""
        draws = np.asarray(draw(row.key("figure"), n), np.float32)
        self.add({f"draws/{row.method}/{row.target}": draws})

    def add_density(self, target: ExactTarget) -> None:
        """Keep the density on a grid over the target's window, as 8 bits between zero and its peak."""
        if target.window is None:
            return
        (x0, x1), (y0, y1) = target.window
        xs, ys = jnp.linspace(x0, x1, GRID), jnp.linspace(y0, y1, GRID)
        points = jnp.stack(jnp.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
        log_density = np.asarray(jax.vmap(target.log_density)(points))
        density = np.exp(log_density - np.nanmax(log_density)).reshape(GRID, GRID)
        self.add({
            f"density/{target.name}": np.round(255 * density).astype(np.uint8),
            f"window/{target.name}": np.array([x0, x1, y0, y1], np.float32),
        })  # fmt: skip

    def keep(self, row: Row, recipe: Recipe, sampler: Sampler, seconds: float) -> None:
        """Keep a trained sampler for the rows that come later."""
        self.samplers.mkdir(parents=True, exist_ok=True)
        about: dict[str, Any] = {"study_seconds": seconds, "recipe": asdict(recipe)}
        Sampler(sampler.latent, sampler.network, sampler.frame, json.dumps(about)).save(self._path(row))

    def sampler(self, row: Row, recipe: Recipe) -> Sampler | None:
        """Return the kept sampler of a row, if there is one that can be read and was trained this way."""
        try:
            kept = load(self._path(row))
        except (OSError, files.BadFileError):
            return None
        return kept if kept.about.get("recipe") == asdict(recipe) else None

    def _path(self, row: Row) -> Path:
        return self.samplers / f"{row.method}-{row.target}-{row.seed}.pf"
