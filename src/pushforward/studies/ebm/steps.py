"""The steps a one-shot sampler is trained by: of the score net, of the sampler, of the forward term."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key, UInt8

from pushforward.studies.ebm.averaging import moving_average
from pushforward.studies.ebm.noise import Batch, Image, denoising_loss, minibatch, noisy
from pushforward.studies.ebm.recipes import Recipe


class SamplerState(NamedTuple):
    """What training a sampler carries from step to step."""

    generator: Any
    average: Any
    encoder: Any
    """Where in the latent space an image lies: what the forward term needs."""
    score: Any
    score_average: Any
    optimisers: tuple[Any, Any, Any]
    """Of generator, encoder and score net."""
    step: Array


class Rules(NamedTuple):
    """The optimisers themselves."""

    generator: optax.GradientTransformation
    encoder: optax.GradientTransformation
    score: optax.GradientTransformation


class Levels(NamedTuple):
    """The range of noise levels."""

    low: float
    high: float


def images_of(generator: Any, z: Float[Array, "n latent"]) -> Batch:
    """Return a batch of images; a generator with batch normalisation has its own way."""
    return generator.images(z) if hasattr(generator, "images") else jax.vmap(generator)(z)


def score_step(
    key: Key[Array, ""],
    state: SamplerState,
    slope: Callable[[Image], Image],
    recipe: Recipe,
    rules: Rules,
    levels: Levels,
) -> tuple[SamplerState, dict[str, Array]]:
    """Fit the score net to the sampler's own noisy draws by denoising score matching."""
    key_z, key_noise = jax.random.split(key)
    z = jax.random.normal(key_z, (recipe.batch, state.generator.latent))
    noised, eps, _ = noisy(key_noise, images_of(state.generator, z), *levels)
    # `S + eps` shall be small, and where the net is a correction, `S = C - grad f`.
    wanted = eps - jax.vmap(slope)(noised) if recipe.corrects else eps
    return fit_score(state, recipe, rules, lambda net: denoising_loss(lambda x: -net(x), noised, wanted))


def fit_score(
    state: SamplerState, recipe: Recipe, rules: Rules, loss: Callable[[Any], Float[Array, ""]]
) -> tuple[SamplerState, dict[str, Array]]:
    """Take one step of the score net down a loss."""
    value, gradient = eqx.filter_value_and_grad(loss)(state.score)
    updates, optimiser = rules.score.update(gradient, state.optimisers[2])
    score = eqx.apply_updates(state.score, updates)
    average = moving_average(state.score_average, score, recipe.score_average, state.step)
    optimisers = (*state.optimisers[:2], optimiser)
    return state._replace(score=score, score_average=average, optimisers=optimisers), {"score": value}


def sampler_step(
    key: Key[Array, ""],
    state: SamplerState,
    slope: Callable[[Image], Image],
    teacher: UInt8[Array, "images height width"] | None,
    recipe: Recipe,
    rules: Rules,
    levels: Levels,
) -> tuple[SamplerState, dict[str, Array]]:
    """Move generator (and encoder, while there is a pull) by the objective at one set of noise levels."""
    key_z, key_noise, key_pull = jax.random.split(key, 3)
    z = jax.random.normal(key_z, (recipe.batch, state.generator.latent))
    surrogate = kl_surrogate if recipe.objective == "kl" else fisher_surrogate

    def loss(nets):
        generator, encoder = nets
        value = surrogate(key_noise, images_of(generator, z), state.score_average, slope, recipe, levels)
        if teacher is None:
            return value
        weight = recipe.pull * jnp.maximum(1.0 - state.step / recipe.pull_steps, 0.0)
        return value + weight * levels.low * forward_loss(
            key_pull, generator, encoder, minibatch(key_pull, teacher, recipe.batch), levels
        )

    value, gradient = eqx.filter_value_and_grad(loss)((state.generator, state.encoder))
    return moved(state, gradient, recipe, rules), {"surrogate": value}


def start_step(
    key: Key[Array, ""],
    state: SamplerState,
    teacher: UInt8[Array, "images height width"],
    recipe: Recipe,
    rules: Rules,
    levels: Levels,
) -> tuple[SamplerState, dict[str, Array]]:
    """Fit generator and encoder to draws of the energy: the forward term alone."""
    x = minibatch(key, teacher, recipe.batch)

    def loss(nets):
        return forward_loss(key, nets[0], nets[1], x, levels)

    value, gradient = eqx.filter_value_and_grad(loss)((state.generator, state.encoder))
    return moved(state, gradient, recipe, rules), {"forward": value}


def moved(state: SamplerState, gradient: Any, recipe: Recipe, rules: Rules) -> SamplerState:
    """Return the state after a step of generator and encoder."""
    step_g, opt_g = rules.generator.update(gradient[0], state.optimisers[0])
    step_e, opt_e = rules.encoder.update(gradient[1], state.optimisers[1])
    generator = eqx.apply_updates(state.generator, step_g)
    return state._replace(
        generator=generator,
        average=moving_average(state.average, generator, recipe.average, state.step),
        encoder=eqx.apply_updates(state.encoder, step_e),
        optimisers=(opt_g, opt_e, state.optimisers[2]),
        step=state.step + 1,
    )


def kl_surrogate(
    key: Key[Array, ""], x: Batch, score: Any, slope: Callable[[Image], Image], recipe: Recipe, levels: Levels
) -> Float[Array, ""]:
    """Return what has the gradient of the KL divergences under noise: `sum x . stop(S + grad f)`, weighted.

    `S / sigma` is the score of the sampler's noisy draws and `-grad f / sigma` that of the energy.
    """
    noised, _, sigma = noisy(key, jax.lax.stop_gradient(x), *levels)
    pull, found = jax.vmap(slope)(noised), jax.vmap(score)(noised)
    direction = sigma * (found if recipe.corrects else found + pull)
    if recipe.balanced:
        direction = direction / _distance(jax.lax.stop_gradient(x), noised, sigma, pull)
    return jnp.sum(x * jax.lax.stop_gradient(direction)) / x.shape[0]


def fisher_surrogate(
    key: Key[Array, ""], x: Batch, score: Any, slope: Callable[[Image], Image], recipe: Recipe, levels: Levels
) -> Float[Array, ""]:
    """Return the Fisher divergences under noise by the projection identity: `(A - S) . (S + eps)`.

    With `A = -grad f`, and `S` in place of the sampler's own score `B` (both times `sigma`). Since
    `E[u(x) . B(x)] = -E[u(x) . eps]` for any field `u`, the divergence `E|A - B|^2` is
    `E[(A - B) . (A + eps)]`, which needs no trace. From it `E|A - S|^2` is taken away once, since with a
    fitted `S` the second form leaves the first's error in the direction in which the sampler should move.
    """
    noised, eps, sigma = noisy(key, x, *levels)
    a, found = -jax.vmap(slope)(noised), jax.vmap(score)(noised)
    s = a + found if recipe.corrects else found
    weight = sigma / _distance(jax.lax.stop_gradient(x), noised, sigma, -a)
    return jnp.sum(jax.lax.stop_gradient(weight) * sigma * (a - s) * (s + eps)) / x.shape[0]


def _distance(x: Batch, noised: Batch, sigma: Array, slope: Batch) -> Float[Array, "n 1 1 1"]:
    """Return how far each image is from the energy's denoised copy, as a root mean square."""
    away = jax.lax.stop_gradient(x - (noised - sigma * slope))
    return jnp.sqrt(jnp.mean(away**2, axis=(1, 2, 3), keepdims=True)) + 0.01


def forward_loss(
    key: Key[Array, ""], generator: Any, encoder: Any, x: Batch, levels: Levels
) -> Float[Array, ""]:
    """Return a bound of `-log q` at draws of the energy, under the lowest noise, a draw on average.

    `|x - g(z)|^2 / (2 sigma^2) + KL(N(m, s^2) || N(0, I))` with `z ~ N(m, s^2)` and `m, s` by the encoder.
    """
    means, logs = jnp.split(jax.vmap(encoder)(x), 2, axis=-1)
    z = means + jnp.exp(logs) * jax.random.normal(key, means.shape)
    misfit = jnp.sum((x - images_of(generator, z)) ** 2, axis=(1, 2, 3)) / (2.0 * levels.low**2)
    spread = 0.5 * jnp.sum(means**2 + jnp.exp(2.0 * logs) - 1.0 - 2.0 * logs, axis=-1)
    return jnp.mean(misfit + spread)
