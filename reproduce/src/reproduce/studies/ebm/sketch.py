"""The first fit to the energy's draws: a generator with an encoder, blurred but of all kinds of images."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from reproduce.images import small_classifier
from reproduce.studies.ebm.keeping import train
from reproduce.studies.ebm.kinds import Teacher
from reproduce.studies.ebm.noise import Batch, begun, descended, rise_and_fall
from reproduce.studies.ebm.settings import Settings

RATE = 1e-3


class Pair(NamedTuple):
    """A generator, and where in its latent space an image lies."""

    generator: Any
    encoder: Any


class SketchState(NamedTuple):
    """What the fit carries from step to step."""

    nets: Pair
    average: Any
    optimiser: Any
    step: Array


def sketched(
    key: Key[Array, ""],
    settings: Settings,
    generator: Any,
    teacher: Teacher,
    folder: Path,
    observe: Callable[[str], None],
) -> Any:
    """Return the generator fitted to draws of the energy by a bound of their likelihood."""
    s, (_, height, width) = settings, teacher.images.shape
    key_encoder, key_steps = jax.random.split(key)
    widths = s.energy_widths if s.energy == "distance" else (16, 48, 96)
    codes = 2 * (s.latent - 1)
    encoder = small_classifier(key_encoder, (height, width), classes=codes, features=codes, widths=widths)
    nets = Pair(generator, encoder)
    num_steps = s.steps(s.sketch_steps)
    rule = optax.chain(
        optax.clip_by_global_norm(1e3), optax.adam(rise_and_fall(RATE, num_steps, last=0.02), b1=0.5, b2=0.99)
    )

    @eqx.filter_jit
    def compiled(key, state, teacher):
        key_batch, key_codes = jax.random.split(key)
        x, kinds = teacher.batch(key_batch, s.sampler_batch)
        loss = partial(forward_loss, key_codes, x=x, kinds=kinds, sigma=s.sigma_min)
        state, value = descended(state, loss, rule, s.average, lambda nets: nets.generator)
        return state, {"forward": value}

    begin = begun(SketchState, nets, generator, rule)
    return train(
        "sketch", key_steps, lambda key, state: compiled(key, state, teacher), begin, num_steps=num_steps,
        folder=folder, every=s.checkpoint_seconds, observe=observe,
    ).average  # fmt: skip


def forward_loss(
    key: Key[Array, ""], nets: Pair, x: Batch, kinds: Int[Array, " n"], sigma: float
) -> Float[Array, ""]:
    """Return a bound of `-log q` at draws of the energy, under noise `sigma`, a draw of its kind on average.

    `|x - g(z)|^2 / (2 sigma^2) + KL(N(m, s^2) || N(0, I))` with `z ~ N(m, s^2)`, all latents but that of the
    kind, and `m, s` by the encoder.
    """
    means, logs = jnp.split(jax.vmap(nets.encoder)(x), 2, axis=-1)
    z = means + jnp.exp(logs) * jax.random.normal(key, means.shape)
    made = jax.vmap(nets.generator.of_kind)(kinds, z)
    misfit = jnp.sum((x - made) ** 2, axis=(1, 2, 3)) / (2.0 * sigma**2)
    spread = 0.5 * jnp.sum(means**2 + jnp.exp(2.0 * logs) - 1.0 - 2.0 * logs, axis=-1)
    return jnp.mean(misfit + spread)
