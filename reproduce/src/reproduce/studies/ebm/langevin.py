"""The stage that draws from the energy by annealed Langevin dynamics, row by row; and what a draw costs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key, UInt8

from pushforward.arrays import read_npz
from reproduce.data.folders import write_npz
from reproduce.rivals.annealed_langevin import Schedule, Start, anneal, schedule
from reproduce.studies.ebm.settings import Settings
from reproduce.studies.ebm.steps import images_of
from reproduce.targets import ImageEnergy
from reproduce.timing import take_turns


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
    images = read_npz(path)["images"]
    return images if images.shape[1:] == shape else np.zeros((0, *shape), np.uint8)


EVALUATIONS, PASSES = 2, 5


def seconds_per_image(
    settings: Settings, target: ImageEnergy, start: Start, generators: dict[str, Any]
) -> dict[str, tuple[float, float, int]]:
    """Return, for every method, the fastest seconds per image, their spread and the batch that was best.

    All take turns, in pieces of about the same length: what else a machine does slows all alike.
    """
    key = jax.random.key(settings.seed)
    plan = Schedule(*(part[:EVALUATIONS] for part in plan_of(settings, max(settings.evaluations))))
    work: dict[tuple[str, int], Callable[[], Any]] = {}
    for batch in settings.speed_batches:
        x = start.sample(key, batch, settings.sigma_max)
        work["langevin", batch] = lambda x=x: anneal(key, target, x, plan)
        for name, net in generators.items():
            work[name, batch] = lambda n=batch, net=net: [_draw(key, net, n) for _ in range(PASSES)]
    times = {
        (name, batch): np.array(seconds) / (len(plan.sigmas) if name == "langevin" else PASSES) / batch
        for (name, batch), seconds in take_turns(work, settings.speed_repeats).items()
    }
    found = {}
    for name in ("langevin", *generators):
        batch = min(settings.speed_batches, key=lambda n, name=name: min(times[name, n]))
        found[name] = (min(times[name, batch]), float(np.std(times[name, batch])), batch)
    least, spread, batch = found.pop("langevin")
    for number in settings.evaluations:
        found[f"langevin-{number}"] = (least * number, spread * number, batch)
    return found


def operations(target: ImageEnergy, generators: dict[str, Any], n: int) -> dict[str, float]:
    """Return floating-point operations per image by the compiler's count, in a batch of `n`."""
    found = {"evaluation": _flops(lambda x: jax.vmap(jax.grad(target.slope))(x), (n, target.dim)) / n}
    for name, net in generators.items():
        found[name] = _flops(lambda z, net=net: images_of(net, z), (n, net.latent)) / n
    return found


def _flops(call: Callable[[Any], Any], shape: tuple[int, ...]) -> float:
    cost = jax.jit(call).lower(jax.ShapeDtypeStruct(shape, np.float32)).compile().cost_analysis()
    return float((cost or {}).get("flops", float("nan")))


@eqx.filter_jit
def _draw(key, net, n):
    return images_of(net, jax.random.normal(key, (n, net.latent)))
