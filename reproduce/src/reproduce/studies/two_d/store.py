"""What the study leaves beside its records: small sets of draws and curves for figures, kept samplers."""

import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from pushforward.base import ExactTarget
from reproduce.studies import store
from reproduce.studies.row import Draw, Row
from reproduce.studies.two_d.settings import Settings

DRAWS = 2000
GRID = 120


class Store(store.Store):
    """A folder of results: `two_d_draws.npz` for the report, and a hidden folder of trained samplers."""

    def __init__(self, folder: Path):
        """Open the store of a results folder."""
        super().__init__(folder, Settings.study)
        self.figures = store.Figures(folder / f"{Settings.study}_draws.npz")
        self.add = self.figures.add

    def clear(self) -> None:
        """Forget everything: a new file of records begins."""
        self.figures.path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def curve(self, name: str) -> np.ndarray:
        """Return a curve that was added."""
        return self.figures.arrays()[name]

    def add_draws(self, row: Row, draw: Draw, n: int = DRAWS) -> None:
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
