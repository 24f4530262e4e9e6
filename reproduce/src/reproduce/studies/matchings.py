"""What estimating the sampler's own score costs: one table of matchings, at equal seconds of training.

The paper names the cost of score estimation as its first limitation. Here KL training runs with each way to
estimate that score, and with an objective that needs none, from the same frame for the same seconds.
"""

import time
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward import Sampler, preset
from pushforward.base import Target
from pushforward.networks import mlp
from pushforward.objectives.base import Objective, View, Wants, push
from pushforward.recipe.train import parts_of
from pushforward.training import alternating, averaged
from pushforward.training.alternating import Parts
from reproduce.records import Record
from reproduce.rivals.chains import run_chunk
from reproduce.studies.noise_levels import MultiNoise, NoiseConditional
from reproduce.studies.row import Row
from reproduce.studies.running import Observe, Study, Work, watching
from reproduce.studies.settings import FEW, FitSettings
from reproduce.studies.two_d import PRESETS as PLANAR
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.settings import SIX
from reproduce.studies.two_d.watch import particles_of

CHANGES: dict[str, dict[str, Any]] = {
    "exact": {},
    "sliced": {"matching": "sliced"},
    "denoising": {"matching": "denoising"},
    "multi-noise": {"matching": MultiNoise(0.1, 3.0)},
    "kernel": {"matching": "kernel", "batch_size": 256},
    "none": {
        "objective": "exact_kl", "matching": "none", "network": "coupled", "depth": 2, "extra_latents": 0,
    },
}  # fmt: skip
"""What each row changes of the method `kl`. `none` is exact KL, whose map knows its own density."""


@dataclass(frozen=True, kw_only=True)
class Settings(FitSettings):
    """Each matching trains for `seconds`; `probe` steps time one; `points` smooth the target."""

    study: ClassVar = "matchings"
    choices: ClassVar = {"targets": SIX, "methods": tuple(CHANGES)}

    targets: tuple[str, ...] = SIX
    methods: tuple[str, ...] = tuple(CHANGES)
    seconds: float = 20.0
    probe: int = 100
    points: int = 64


PRESETS = {
    "smoke": Settings(preset="smoke", targets=("gaussian",), seconds=0.1, probe=2, recipe_changes=FEW),
    "cpu": Settings(preset="cpu"),
}


class NoisyKL(Objective):
    """KL between draws and target, both in noise of every level, as the paper trains on images.

    The score of the smoothed target at `y` is the mean of `(x - y) / sigma^2` over `x ~ N(y, sigma^2)`, each
    weighted by the target's density; `points` pairs of such `x`, mirrored about `y`, estimate it.
    """

    wants = Wants(one_derivative=True)

    levels: MultiNoise
    points: int = eqx.field(static=True)

    def surrogate(self, key: Key[Array, ""], network: Any, z: Any, view: View) -> Float[Array, ""]:
        """Return the surrogate; levels weigh by their `sigma`."""
        key_level, key_noise, key_points = jax.random.split(key, 3)
        x = push(network, z)
        sigma = self.levels.levels(key_level, len(x))
        y = jax.lax.stop_gradient(x) + sigma[:, None] * jax.random.normal(key_noise, x.shape)
        smooth = jax.vmap(partial(self._score, view.target))(jax.random.split(key_points, len(x)), y, sigma)
        pull = sigma[:, None] * (jax.vmap(view.score)(y, sigma) - smooth)
        return jnp.mean(jnp.sum(x * jax.lax.stop_gradient(pull), axis=-1))

    def _score(self, target: Target, key: Any, y: Any, sigma: Any) -> Float[Array, " dim"]:
        half = jax.random.normal(key, (self.points, y.size))
        e = jnp.concatenate([half, -half])
        return jax.nn.softmax(jax.vmap(target.log_density)(y + sigma * e)) @ e / sigma


def parts_for(method: str, key: Key[Array, ""], found: Any, settings: Settings, num_steps: int) -> Parts:
    """Return all that training by a matching needs, from what the particles found."""
    changes = CHANGES[method]
    if method == "multi-noise":
        changes = {**changes, "objective": NoisyKL(changes["matching"], settings.points)}
    asked = preset("kl", num_steps=num_steps, **changes)
    parts = parts_of(key, found, asked)
    if method != "multi-noise":
        return parts
    dim = found.dim
    net = mlp(key, dim + 1, dim, width=asked.score_width, depth=asked.score_depth)
    return eqx.tree_at(lambda p: p.score_net, parts, NoiseConditional(net))


def trained(row: Row, settings: Settings) -> tuple[Sampler, float, int]:
    """Return the sampler after the seconds, the seconds of a step, and the steps."""
    found = particles_of(row.target, row.seed, PLANAR[settings.preset]).state
    assert found is not None
    key_parts, key_probe, key_run = jax.random.split(row.key("train"), 3)

    def advance(steps: int, key: Key[Array, ""], times: list[int]) -> tuple[Parts, Any, list[float]]:
        parts = parts_for(row.method, key_parts, found, settings, steps)
        algorithm, taken, first = alternating(parts), [], 0
        state = algorithm.init(key)
        for count in times:
            began = time.perf_counter()
            state, _ = jax.block_until_ready(run_chunk(algorithm, key, state, jnp.asarray(first), count))
            taken.append((time.perf_counter() - began) / count)
            first += count
        return parts, state, taken

    # The first piece compiles.
    _, _, taken = advance(4 * settings.probe, key_probe, [settings.probe] * 4)
    step = sorted(taken[1:])[1]
    steps = max(1, int(settings.seconds / step))
    parts, state, _ = advance(steps, key_run, [steps])
    return Sampler(parts.latent, averaged(parts, state), found.coordinates), step, steps


def rows(settings: Settings) -> list[Row]:
    """Return every matching on every target."""
    return [Row(method, target, 0) for target in settings.targets for method in settings.methods]


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    judge_of = cache(lambda name: Judge(name, PLANAR[settings.preset]))

    def of(row: Row) -> list[Record]:
        sampler, step, steps = trained(row, settings)
        judge = judge_of(row.target)
        judged = [judge.paper_ksd(row, sampler.sample), *judge.scores(row, sampler.sample)]
        own = settings.figures(row, {"step_seconds": step, "iterations": steps})
        return [*(replace(r, study=settings.study) for r in judged), *own]

    return Work(of, watching())


STUDY = Study("matchings", rows, _work)
run, plan = STUDY.run, STUDY.plan
