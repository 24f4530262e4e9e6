"""What a draw costs: seconds in one interleaved run, and the operations the compiler counts."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from reproduce.rivals.annealed_langevin import Schedule, Start, anneal
from reproduce.studies.ebm.langevin import plan_of
from reproduce.studies.ebm.settings import Settings
from reproduce.studies.ebm.steps import images_of
from reproduce.targets import ImageEnergy
from reproduce.timing import take_turns

EVALUATIONS, PASSES = 2, 5


def seconds_per_image(
    settings: Settings, target: ImageEnergy, start: Start, generators: dict[str, Any]
) -> dict[str, tuple[float, float, int]]:
    """Return, for every method, the fastest seconds per image, their spread and the batch that was best.

    All methods take turns, repeat by repeat, in pieces of about the same length: `PASSES` of a sampler, and
    `EVALUATIONS` of Langevin dynamics, each of which takes the same time. So a machine with other things to
    do slows all alike, and the fastest repeat of each is the one that was left alone. Drawing where the
    chains start is not counted.
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
