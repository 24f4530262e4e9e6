"""The stages that train one-shot samplers: a warm start from the energy's draws, then KL or Fisher."""

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key, UInt8
from scipy.special import ndtri

from reproduce.images import (
    DistanceEnergy,
    PlainScore,
    UNet,
    correction,
    critic,
    generator,
    images_of,
    paper_generator,
    unet,
    with_shares,
)
from reproduce.studies.ebm.keeping import train
from reproduce.studies.ebm.kinds import Teacher, sorted_into_kinds
from reproduce.studies.ebm.langevin import as_bytes
from reproduce.studies.ebm.moments import Features, Moments, features_of, first_lead
from reproduce.studies.ebm.noise import rise_and_fall
from reproduce.studies.ebm.recipes import Recipe, recipe_of
from reproduce.studies.ebm.settings import Settings
from reproduce.studies.ebm.sketch import sketched
from reproduce.studies.ebm.steps import Levels, Rules, SamplerState, critic_step, sampler_step, score_step

CRITIC_RATE = 5e-4
SHOWN = 10  # images of every look of the filmstrip


class Workshop:
    """Trains samplers of one energy; each part of the work has a checkpoint in `folder`."""

    def __init__(
        self,
        settings: Settings,
        energy: Any,
        teacher: UInt8[np.ndarray, "images height width"] | None,
        folder: Path,
        *,
        shape: tuple[int, int],
        observe: Callable[[str], None],
        note: Callable[[dict[str, np.ndarray]], None],
    ):
        self.settings, self.energy, self.shape = settings, energy, shape
        self.folder, self.observe, self.note = folder, observe, note
        self.key = jax.random.fold_in(jax.random.key(settings.seed), 3)
        self.wanted: tuple[Features, Moments] | None = None
        self.teacher: Teacher | None = None
        if teacher is not None:
            self.wanted = features_of(jax.random.fold_in(self.key, 6), self._known(), teacher)
            self.teacher = sorted_into_kinds(
                jax.random.fold_in(self.key, 7), self.wanted[0], teacher, settings.kinds, settings.sigma_min,
                folder / "kinds.npz",
            )  # fmt: skip

    def train(self, method: str) -> Any:
        """Train a sampler by a method's recipe and return the moving average of its generator."""
        return self._trained(method).average

    def _trained(self, method: str) -> SamplerState:
        recipe = recipe_of(method, self.settings)
        levels = Levels(self.settings.sigma_min, recipe.sigma_max)
        state, rules = fresh(self._begin(method, recipe), recipe)
        wanted = self.wanted if recipe.moments else None
        state = state._replace(lead=first_lead(wanted[1]) if wanted else None)

        @eqx.filter_jit
        def fit_score(key, state, energy):
            return score_step(key, state, jax.grad(energy), recipe, rules, levels)

        @eqx.filter_jit
        def fit_critic(key, state, teacher):
            return critic_step(key, state, teacher, recipe, rules)

        @eqx.filter_jit
        def move(key, state, energy, wanted):
            return sampler_step(key, state, jax.grad(energy), recipe, rules, levels, wanted)

        def watch(key: Key[Array, ""], state: SamplerState):
            known: dict[str, Array] = {}
            if recipe.objective != "pull":
                for i in range(recipe.score_steps):
                    state, known = fit_score(jax.random.fold_in(key, i), state, self.energy)
            if recipe.pull:
                state, found = fit_critic(jax.random.fold_in(key, 2000), state, self.teacher)
                known = {**known, **found}
            return state, known

        def step(key: Key[Array, ""], state: SamplerState):
            state, known = watch(key, state)
            state, info = move(jax.random.fold_in(key, 1000), state, self.energy, wanted)
            return state, {**known, **info}

        run = partial(train, folder=self.folder, every=self.settings.checkpoint_seconds, observe=self.observe)
        s, look = self.settings, partial(self._look, method)
        if recipe.warm:
            # Who leads the sampler shall know its draws before it moves. KL and Fisher share the score net.
            first, steps = ("start", s.first_critic_steps) if recipe.pull else ("score", s.first_score_steps)
            state = run(f"{first}-first", self._keys(first)[0], watch, state, num_steps=s.steps(steps))
        # A run may be made longer, so its length is no part of what it is.
        what = {name: value for name, value in asdict(recipe).items() if name != "steps"}
        return run(method, self._keys(method)[1], step, state, num_steps=recipe.steps, look=look, recipe=what)

    def _keys(self, stage: str) -> Key[Array, " 2"]:
        """Return the keys of what comes before a stage's steps, and of those."""
        return jax.random.split(jax.random.fold_in(self.key, sum(map(ord, stage))))

    def _begin(self, method: str, recipe: Recipe) -> SamplerState:
        """Return where a method begins: from nothing, from the sketch, or from the start."""
        state = build(self.key, self.settings, self.shape)
        if not recipe.warm:
            return state
        if method == "start":
            assert self.teacher is not None
            count = self.settings.kinds
            shared = with_shares(state.generator, self.teacher.shares(count))
            key_sketch, key_critic = jax.random.split(jax.random.fold_in(self.key, 5))
            sketch = sketched(key_sketch, self.settings, shared, self.teacher, self.folder, self.observe)
            judge = critic(key_critic, self._known(), self.shape, count)
            return state._replace(generator=sketch, critic=judge)
        start = self._trained("start")
        return start._replace(generator=start.average, score=correction(self._known()))

    def _known(self) -> UNet:
        """Return a net that knows what images are made of, where the energy has one."""
        if isinstance(self.energy, DistanceEnergy):
            return self.energy.denoiser
        return build(self.key, self.settings, self.shape).score.net

    def _look(self, method: str, number: int, state: SamplerState) -> None:
        z = jax.random.normal(jax.random.fold_in(self.key, 99), (SHOWN, state.average.latent))
        images = as_bytes(np.asarray(_draw(state.average, z)), self.shape)
        self.note({f"film/{method}/{number:06d}": images})


def build(key: Key[Array, ""], settings: Settings, shape: tuple[int, int]) -> SamplerState:
    """Return an untrained state, its optimisers empty."""
    key_g, key_c, key_s = jax.random.split(key, 3)
    s = settings
    if s.generator == "paper":
        net = paper_generator(key_g, latent=s.latent)
    else:
        net = generator(
            key_g, shape, latent=s.latent, stem=2 * s.latent, widths=s.generator_widths, kinds=s.kinds
        )
    score = PlainScore(unet(key_s, s.energy_widths, shape=shape, middle=s.energy_middle))
    judge = critic(key_c, score.net, shape, s.kinds)
    return SamplerState(net, net, judge, score, score, None, (None, None, None), jnp.zeros((), jnp.int32))


def fresh(state: SamplerState, recipe: Recipe) -> tuple[SamplerState, Rules]:
    """Return the state at the beginning of a recipe, and its optimisers.

    Adam with betas (0, 0.99) for the sampler and (0.9, 0.99) for the score net, as in the paper; where the
    start is warm, rates rise at first and fall at last.
    """

    def falling(rate: float) -> Any:
        return rise_and_fall(rate, recipe.steps, last=0.02) if recipe.warm else rate

    def adam(rate: Any, b1: float) -> optax.GradientTransformation:
        return optax.chain(
            optax.clip_by_global_norm(1e3 if b1 == 0.0 else 1.0), optax.adam(rate, b1=b1, b2=0.99)
        )

    rules = Rules(
        adam(falling(recipe.rate), 0.0), adam(falling(CRITIC_RATE), 0.5), adam(recipe.score_rate, 0.9)
    )
    nets = (state.generator, state.critic, state.score)
    optimisers = tuple(
        rule.init(eqx.filter(net, eqx.is_inexact_array)) for rule, net in zip(rules, nets, strict=True)
    )
    fields = {"average": state.generator, "score_average": state.score, "optimisers": optimisers}
    return state._replace(**fields, step=jnp.zeros((), jnp.int32)), rules


@eqx.filter_jit
def _draw(generator: Any, z: Array) -> Array:
    return images_of(generator, z)


def draw(
    key: Key[Array, ""], generator: Any, n: int, shape: tuple[int, int], *, latents: str = "iid"
) -> UInt8[np.ndarray, "n height width"]:
    """Return `n` images of a sampler as bytes, in batches of 250; `latents` are `iid` or `sobol`."""
    batches = -(-n // 250)
    if latents == "sobol":
        parts = jnp.split(_sobol(key, 250 * batches, generator.latent), batches)
    else:
        keys = (jax.random.fold_in(key, i) for i in range(batches))
        parts = (jax.random.normal(k, (250, generator.latent)) for k in keys)
    return np.concatenate([as_bytes(np.asarray(_draw(generator, z)), shape) for z in parts])[:n]


def _sobol(key: Key[Array, ""], n: int, dim: int) -> Float[Array, "n dim"]:
    """Return the first of a scrambled Sobol sequence, as normal numbers."""
    from scipy.stats import qmc  # half a second to import

    seed = int(jax.random.bits(key, dtype=jnp.uint32))
    engine = qmc.Sobol(dim, rng=np.random.default_rng(seed))
    points = engine.random_base2(math.ceil(math.log2(max(n, 2))))[:n]
    return jax.device_put(ndtri(np.clip(points, 1e-7, 1.0 - 1e-7)).astype(np.float32))
