"""The stage that draws from the energy by annealed Langevin dynamics, row by row; batches done are kept."""

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Array, Float, Key, UInt8

from reproduce.data.folders import write_npz
from reproduce.rivals.annealed_langevin import Schedule, Start, anneal, schedule
from reproduce.studies.ebm.settings import Settings
from reproduce.targets import ImageEnergy


def plan_of(settings: Settings, evaluations: int) -> Schedule:
    """Return the schedule of a row."""
    s = settings
    return schedule(
        evaluations, s.sigma_min, s.sigma_max, s.mixing, late_mixing=s.late_mixing, late_from=s.late_from
    )


def draw_batch(
    key: Key[Array, ""], target: ImageEnergy, start: Start, plan: Schedule, n: int
) -> Float[Array, "n dim"]:
    """Return one batch of draws."""
    key_start, key_walk = jax.random.split(key)
    return anneal(key_walk, target, start.sample(key_start, n, float(plan.sigmas[0])), plan)


def as_bytes(x: np.ndarray, shape: tuple[int, int]) -> UInt8[np.ndarray, "n height width"]:
    """Return images as files hold them: cut to [0, 1], 256 levels."""
    return np.round(255.0 * np.clip(np.asarray(x), 0.0, 1.0)).astype(np.uint8).reshape(-1, *shape)


def drawn(
    name: str,
    key: Key[Array, ""],
    settings: Settings,
    target: ImageEnergy,
    start: Start,
    *,
    evaluations: int,
    num_images: int,
    folder: Path,
    observe: Callable[[str], None],
) -> UInt8[np.ndarray, "n height width"]:
    """Return `num_images` draws, of which those in `folder/name.npz` need not be drawn again."""
    path, size = folder / f"{name}.npz", settings.langevin_batch
    held = _held(path, target.shape)
    plan = plan_of(settings, evaluations)
    for batch in range(len(held) // size, -(-num_images // size)):
        x = draw_batch(jax.random.fold_in(key, batch), target, start, plan, size)
        held = np.concatenate([held[: batch * size], as_bytes(np.asarray(x), target.shape)])
        write_npz(path, {"images": held})
    observe(f"{name}: {min(num_images, len(held))} images of {evaluations} evaluations")
    return held[:num_images]


def _held(path: Path, shape: tuple[int, int]) -> np.ndarray:
    if not path.exists():
        return np.zeros((0, *shape), np.uint8)
    with np.load(path, allow_pickle=False) as file:
        images = file["images"]
    return images if images.shape[1:] == shape else np.zeros((0, *shape), np.uint8)
