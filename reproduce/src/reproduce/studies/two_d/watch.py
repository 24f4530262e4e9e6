"""What the study leaves beside its records; and `fit` with someone watching."""

import shutil
import time
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward import Fit, Sampler, methods
from pushforward.base import ExactTarget
from pushforward.metrics import ksd_imq_v, sliced_w2
from pushforward.recipe.methods import Method
from pushforward.run.clock import Progress
from pushforward.targets import get
from reproduce.studies import store
from reproduce.studies.fitting import annealed, fit_to_the_end
from reproduce.studies.row import Draw, Row
from reproduce.studies.two_d.settings import Settings
from reproduce.targets.grid import log_densities

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
        heights = log_densities(target, target.window, GRID)
        density = np.exp(heights - np.nanmax(heights))
        self.add({
            f"density/{target.name}": np.round(255 * density).astype(np.uint8),
            f"window/{target.name}": np.array(target.window, np.float32).ravel(),
        })  # fmt: skip


UNSEEN = (float("nan"),) * 3


class Watched(NamedTuple):
    """A trained sampler, what it cost without the watching, and what was seen on the way."""

    sampler: Sampler
    seconds: float
    curve: Float[np.ndarray, "checkpoints 4"]
    """Columns: seconds, mean KSD over the repeats, its spread, sliced W2."""


def watch(name: str, seed: int, how: Method, settings: Settings, *, look: bool = True) -> Watched:
    """Train as `fit(key(seed), target)` does and judge `settings.checkpoints` evenly spaced checkpoints."""
    target, key = get(name), jax.random.key(seed)
    key_look = jax.random.fold_in(key, 1)
    assert isinstance(target, ExactTarget)
    start, seconds, looking = None, 0.0, 0.0
    if how.recipe.training.frame == "annealed":
        before = particles_of(name, seed, settings)
        start, seconds = before.state, before.seconds
    lines: list[tuple[float, ...]] = []

    def watcher(row: Progress) -> None:
        nonlocal looking
        assert row.sampler is not None
        # A row's clock is read before it is looked at: what counts is the looking of the rows before.
        at, began = seconds + row["seconds"] - looking, time.monotonic()
        lines.append((at, *(_look(key_look, row.sampler, target, settings) if look else UNSEEN)))
        looking += time.monotonic() - began

    # As many rows as checkpoints.
    only = how.replace(stages=(methods.TRAIN,), clock={"rows": settings.checkpoints})
    done = fit_to_the_end(key, target, method=only, start=start, callback=watcher)
    if not lines:
        # Where there is nothing to learn the training has no rows: one look, at its end.
        seen = _look(key_look, done.sampler, target, settings) if look else UNSEEN
        lines.append((seconds + done.seconds, *seen))
    curve = np.array(lines)
    return Watched(done.sampler, float(curve[-1, 0]), curve)


def particles_of(name: str, seed: int, settings: Settings) -> Fit:
    """Return what `fit(key(seed), target)` finds before it trains."""
    return annealed(get, name, seed, settings.asked(methods.METHODS["annealed"]))


def _look(
    key: Key[Array, ""], sampler: Sampler, target: ExactTarget, settings: Settings
) -> tuple[float, float, float]:
    """Return the mean KSD, its spread and sliced W2."""
    key_ksd, key_w2 = jax.random.split(key)
    ksds = np.asarray(
        _ksds(sampler, target, jax.random.split(key_ksd, settings.checkpoint_repeats), settings.ksd_n)
    )
    w2 = float(_w2(sampler, target, key_w2, settings.pair_n))
    return float(ksds.mean()), float(ksds.std(ddof=1)), w2


@eqx.filter_jit
def _ksds(
    sampler: Sampler, target: ExactTarget, keys: Key[Array, " repeats"], n: int
) -> Float[Array, " repeats"]:
    def one(key: Key[Array, ""]) -> Float[Array, ""]:
        return ksd_imq_v(jax.vmap(sampler)(sampler.latent.sample(key, n)), target)

    return jax.lax.map(one, keys)


@eqx.filter_jit
def _w2(sampler: Sampler, target: ExactTarget, key: Key[Array, ""], n: int) -> Float[Array, ""]:
    key_draws, key_exact, key_directions = jax.random.split(key, 3)
    draws = jax.vmap(sampler)(sampler.latent.sample(key_draws, n))
    finite = jnp.all(jnp.isfinite(draws))
    return jnp.where(finite, sliced_w2(key_directions, draws, target.sample(key_exact, n)), jnp.nan)
