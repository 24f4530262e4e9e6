"""The stages that train one-shot samplers: a warm start from the energy's draws, then KL or Fisher."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Key, UInt8

from pushforward.networks.images import (
    DistanceEnergy,
    PlainScore,
    correction,
    generator,
    paper_generator,
    small_classifier,
    unet,
)
from pushforward.studies.ebm.averaging import rise_and_fall
from pushforward.studies.ebm.keeping import train
from pushforward.studies.ebm.langevin import as_bytes
from pushforward.studies.ebm.recipes import Recipe, recipe_of
from pushforward.studies.ebm.settings import Settings
from pushforward.studies.ebm.steps import (
    Levels,
    Rules,
    SamplerState,
    images_of,
    sampler_step,
    score_step,
    start_step,
)

START_RATE = 1e-3
SHOWN = 10
"""Images of every look of the filmstrip."""


class Workshop:
    """Trains samplers of one energy; each part of the work has a checkpoint in `folder`.

    **Arguments:**

    - `energy`: the trained energy.
    - `teacher`: draws of it, as bytes.
    - `note`: receives arrays for figures, by name.
    """

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
        self.teacher = None if teacher is None else jax.device_put(teacher)
        self.folder, self.observe, self.note = folder, observe, note
        self.levels = Levels(settings.sigma_min, settings.sigma_max)
        self.key = jax.random.fold_in(jax.random.key(settings.seed), 3)

    def train(self, method: str) -> Any:
        """Train a sampler by a method's recipe and return the moving average of its generator."""
        recipe = recipe_of(method, self.settings)
        state = self._started() if recipe.warm else build(self.key, self.settings, self.shape)
        state, rules = fresh(state, recipe)

        @eqx.filter_jit
        def fit_score(key, state, energy):
            return score_step(key, state, jax.grad(energy), recipe, rules, self.levels)

        @eqx.filter_jit
        def move(key, state, energy, teacher):
            return sampler_step(key, state, jax.grad(energy), teacher, recipe, rules, self.levels)

        def learn(key, state):
            return fit_score(key, state, self.energy)

        if recipe.warm:
            # The score net shall know the sampler's draws before the sampler moves.
            state = self._part(
                f"{method}-score", state, learn, self.settings.steps(self.settings.score_start)
            )
        pulled_until = recipe.pull_steps if recipe.pull and self.teacher is not None else 0

        def step(key: Key[Array, ""], state: SamplerState):
            known: dict[str, Array] = {}
            for i in range(recipe.score_steps):
                state, known = learn(jax.random.fold_in(key, i), state)
            teacher = self.teacher if int(state.step) < pulled_until else None
            state, info = move(jax.random.fold_in(key, 1000), state, self.energy, teacher)
            return state, {**known, **info}

        last = train(
            method, jax.random.fold_in(self.key, sum(map(ord, method))), step, state,
            num_steps=recipe.steps, folder=self.folder, every=self.settings.checkpoint_seconds,
            observe=self.observe, look=lambda number, state: self._look(method, number, state),
        )  # fmt: skip
        return last.average

    def start(self) -> Any:
        """Return the generator that has been fitted to the energy's draws and to nothing else."""
        return self._started().generator

    def _started(self) -> SamplerState:
        """Return generator and encoder fitted to the energy's draws."""
        s = self.settings
        state = build(self.key, s, self.shape)
        recipe = Recipe(
            steps=s.steps(s.start_steps), batch=s.sampler_batch, rate=START_RATE, average=s.average
        )
        state, rules = fresh(state, recipe)

        @eqx.filter_jit
        def start(key, state, teacher):
            return start_step(key, state, teacher, recipe, rules, self.levels)

        state = self._part("start", state, lambda key, state: start(key, state, self.teacher), recipe.steps)
        known = self.energy.denoiser if isinstance(self.energy, DistanceEnergy) else state.score.net
        return state._replace(generator=state.average, score=correction(known))

    def _part(self, name: str, state: SamplerState, step: Any, num_steps: int) -> SamplerState:
        key = jax.random.fold_in(self.key, sum(map(ord, name)))
        return train(
            name, key, step, state, num_steps=num_steps, folder=self.folder,
            every=self.settings.checkpoint_seconds, observe=self.observe,
        )  # fmt: skip

    def _look(self, method: str, number: int, state: SamplerState) -> None:
        z = jax.random.normal(jax.random.fold_in(self.key, 99), (SHOWN, state.average.latent))
        images = as_bytes(np.asarray(_draw(state.average, z)), self.shape)
        self.note({f"film/{method}/{number:06d}": images})


def build(key: Key[Array, ""], settings: Settings, shape: tuple[int, int]) -> SamplerState:
    """Return an untrained state, its optimisers empty."""
    key_g, key_e, key_s = jax.random.split(key, 3)
    s = settings
    if s.generator == "paper":
        net = paper_generator(key_g, latent=s.latent)
    else:
        net = generator(key_g, shape, latent=s.latent, stem=2 * s.latent, widths=s.generator_widths)
    widths = s.energy_widths if s.energy == "distance" else (16, 48, 96)
    encoder = small_classifier(key_e, shape, classes=2 * s.latent, widths=widths, features=2 * s.latent)
    score = PlainScore(unet(key_s, s.energy_widths))
    return SamplerState(net, net, encoder, score, score, (None, None, None), jnp.zeros((), jnp.int32))


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

    rules = Rules(adam(falling(recipe.rate), 0.0), adam(falling(1e-3), 0.9), adam(recipe.score_rate, 0.9))
    nets = (state.generator, state.encoder, state.score)
    optimisers = tuple(
        rule.init(eqx.filter(net, eqx.is_inexact_array)) for rule, net in zip(rules, nets, strict=True)
    )
    fields = {"average": state.generator, "score_average": state.score, "optimisers": optimisers}
    return state._replace(**fields, step=jnp.zeros((), jnp.int32)), rules


@eqx.filter_jit
def _draw(generator: Any, z: Array) -> Array:
    return images_of(generator, z)


def draw(key: Key[Array, ""], generator: Any, n: int, shape: tuple[int, int]) -> np.ndarray:
    """Return `n` images of a sampler as bytes, in batches of 250."""
    parts = []
    for i in range(-(-n // 250)):
        z = jax.random.normal(jax.random.fold_in(key, i), (250, generator.latent))
        parts.append(as_bytes(np.asarray(_draw(generator, z)), shape))
    return np.concatenate(parts)[:n]
