"""The stage that trains the energy: denoising score matching at many noise levels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Key, UInt8

from reproduce.images import DistanceEnergy, ResidualEnergy, distance_energy, residual_energy
from reproduce.studies.ebm.keeping import train
from reproduce.studies.ebm.noise import begun, denoising_loss, descended, minibatch, noisy, rise_and_fall
from reproduce.studies.ebm.settings import Settings
from reproduce.targets import ImageEnergy

CLIP = 0.5
AVERAGE = 0.999


class EnergyState(NamedTuple):
    """What training the energy carries from step to step."""

    energy: Any
    average: Any
    optimiser: Any
    step: Array


def build_energy(key: Key[Array, ""], settings: Settings, shape: tuple[int, int]) -> Any:
    """Return an untrained energy of the settings' kind."""
    if settings.energy == "distance":
        return distance_energy(key, settings.energy_widths, shape=shape, middle=settings.energy_middle)
    return residual_energy(key, base=settings.residual_base, side=shape[0])


def target_of(
    energy: DistanceEnergy | ResidualEnergy, settings: Settings, shape: tuple[int, int]
) -> ImageEnergy:
    """Return the target of an energy at the lowest noise level."""
    return ImageEnergy(energy, shape, settings.sigma_min)


def energy_stage(
    settings: Settings,
    shape: tuple[int, int],
    pixels: UInt8[Array, "images height width"],
    folder: Path,
    observe: Callable[[str], None],
) -> Any:
    """Train the energy, or what is left of it, and return its moving average."""
    key_init, key_run = jax.random.split(jax.random.fold_in(jax.random.key(settings.seed), 1))
    state, rule = start(key_init, settings, shape)

    @eqx.filter_jit
    def step(key, state, pixels):
        return energy_step(key, state, pixels, settings, rule)

    last = train(
        "energy", key_run, lambda key, state: step(key, state, pixels), state,
        num_steps=settings.steps(settings.energy_steps), folder=folder, every=settings.checkpoint_seconds,
        observe=observe,
    )  # fmt: skip
    return last.average


def start(
    key: Key[Array, ""], settings: Settings, shape: tuple[int, int]
) -> tuple[EnergyState, optax.GradientTransformation]:
    """Return the untrained state and the optimiser: Adam (0.9, 0.99), clipped."""
    energy = build_energy(key, settings, shape)
    rate = rise_and_fall(settings.energy_rate, settings.energy_steps)
    rule = optax.chain(optax.clip_by_global_norm(CLIP), optax.adam(rate, b1=0.9, b2=0.99))
    return begun(EnergyState, energy, energy, rule), rule


def energy_step(
    key: Key[Array, ""],
    state: EnergyState,
    pixels: UInt8[Array, "images height width"],
    settings: Settings,
    rule: optax.GradientTransformation,
) -> tuple[EnergyState, dict[str, Array]]:
    """Take one step of denoising score matching: `grad f(x + sigma eps)` shall be `eps`."""
    key_batch, key_noise = jax.random.split(key)
    x = minibatch(key_batch, pixels, settings.energy_batch)
    noised, eps, sigma = noisy(key_noise, x, settings.sigma_min, settings.sigma_max)

    def loss(energy):
        # The loss of a trained energy falls about like `1 / sigma`: so weighted, all levels count alike, and
        # those that decide of which kind an image becomes are not left to the last.
        return denoising_loss(jax.grad(energy), noised, eps, sigma / jnp.mean(sigma))

    state, value = descended(state, loss, rule, AVERAGE)
    return state, {"loss": value}
