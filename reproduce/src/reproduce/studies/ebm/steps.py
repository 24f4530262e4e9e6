"""The steps a one-shot sampler is trained by: of the score net, of the critic, of the sampler."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from reproduce.images import images_of, kinds_of
from reproduce.studies.ebm.kinds import Teacher
from reproduce.studies.ebm.moments import Features, Lead, Moments, followed
from reproduce.studies.ebm.moments import surrogate as moments_surrogate
from reproduce.studies.ebm.noise import Batch, Image, denoising_loss, moving_average, noisy
from reproduce.studies.ebm.recipes import Recipe


class SamplerState(NamedTuple):
    """What training a sampler carries from step to step."""

    generator: Any
    average: Any
    critic: Any  # tells draws of the energy from the sampler's: what the forward term needs
    score: Any
    score_average: Any
    lead: Lead | None  # where the moments of the energy's features lead, if they do
    optimisers: tuple[Any, Any, Any]  # of generator, critic and score net
    step: Array


class Rules(NamedTuple):
    """The optimisers themselves."""

    generator: optax.GradientTransformation
    critic: optax.GradientTransformation
    score: optax.GradientTransformation


class Levels(NamedTuple):
    """The range of noise levels."""

    low: float
    high: float


CRITIC_LEVELS = Levels(0.02, 1.0)
"""Noise in which a critic sees images: from none to speak of, to what leaves their outlines."""

SHIFT = 2
"""Pixels by which an image that a critic sees may be moved: it must not learn the teacher's by heart."""


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

    def loss(net):
        return denoising_loss(lambda x: -net(x), noised, wanted)

    score, optimiser, value = _descended(state.score, loss, rules.score, state.optimisers[2])
    average = moving_average(state.score_average, score, recipe.score_average)
    optimisers = (*state.optimisers[:2], optimiser)
    return state._replace(score=score, score_average=average, optimisers=optimisers), {"score": value}


def critic_step(
    key: Key[Array, ""], state: SamplerState, teacher: Teacher, recipe: Recipe, rules: Rules
) -> tuple[SamplerState, dict[str, Array]]:
    """Teach the critic to tell the energy's draws from the sampler's of the same kind."""
    key_z, key_real, key_see, key_fake = jax.random.split(key, 4)
    z = jax.random.normal(key_z, (recipe.batch, state.generator.latent))
    images, real_kinds = teacher.batch(key_real, recipe.batch)
    real = seen(key_see, images)
    fake, fake_kinds = seen(key_fake, images_of(state.generator, z)), kinds_of(state.generator, z)

    def loss(critic):
        right, wrong = jax.vmap(critic)(real, real_kinds), jax.vmap(critic)(fake, fake_kinds)
        return jnp.mean(jax.nn.softplus(-right) + jax.nn.softplus(wrong))

    critic, optimiser, value = _descended(state.critic, loss, rules.critic, state.optimisers[1])
    optimisers = (state.optimisers[0], optimiser, state.optimisers[2])
    return state._replace(critic=critic, optimisers=optimisers), {"critic": value}


def _descended(net: Any, loss: Callable[[Any], Array], rule: Any, optimiser: Any) -> tuple[Any, Any, Array]:
    value, gradient = eqx.filter_value_and_grad(loss)(net)
    updates, optimiser = rule.update(gradient, optimiser)
    return eqx.apply_updates(net, updates), optimiser, value


def seen(key: Key[Array, ""], x: Batch) -> Batch:
    """Return images as a critic sees them: moved a little, and in noise."""
    key_shift, key_noise = jax.random.split(key)
    shifts = jax.random.randint(key_shift, (x.shape[0], 2), -SHIFT, SHIFT + 1)
    moved = jax.vmap(lambda image, shift: jnp.roll(image, shift, (0, 1)))(x, shifts)
    return noisy(key_noise, moved, *CRITIC_LEVELS)[0]


def sampler_step(
    key: Key[Array, ""],
    state: SamplerState,
    slope: Callable[[Image], Image],
    recipe: Recipe,
    rules: Rules,
    levels: Levels,
    wanted: tuple[Features, Moments] | None,
) -> tuple[SamplerState, dict[str, Array]]:
    """Move the generator by the objective under noise, by the critic, and towards the moments `wanted`."""
    key_z, key_noise, key_pull, key_moments = jax.random.split(key, 4)
    z = jax.random.normal(key_z, (recipe.batch, state.generator.latent))
    surrogate = SURROGATES.get(recipe.objective)

    def loss(generator):
        x, terms = images_of(generator, z), {}
        if surrogate is not None:
            terms["surrogate"] = surrogate(key_noise, x, state.score_average, slope, recipe, levels)
        if recipe.pull:
            kinds = kinds_of(generator, z)
            doubt = jax.nn.softplus(-jax.vmap(state.critic)(seen(key_pull, x), kinds))
            terms["pull"] = recipe.pull * jnp.mean(doubt)
        if wanted is None or state.lead is None:
            return sum(terms.values()), (terms, None)
        apart, u = moments_surrogate(key_moments, x, wanted[0], state.lead, wanted[1])
        terms["moments"] = recipe.moments * apart
        return sum(terms.values()), (terms, followed(state.lead, u, wanted[1], state.step, recipe.memory))

    (_, (terms, lead)), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(state.generator)
    change, optimiser = rules.generator.update(gradient, state.optimisers[0])
    generator = eqx.apply_updates(state.generator, change)
    return state._replace(
        generator=generator,
        average=moving_average(state.average, generator, recipe.average, state.step),
        lead=lead,
        optimisers=(optimiser, *state.optimisers[1:]),
        step=state.step + 1,
    ), terms


def kl_surrogate(
    key: Key[Array, ""], x: Batch, score: Any, slope: Callable[[Image], Image], recipe: Recipe, levels: Levels
) -> Float[Array, ""]:
    """Return what has the gradient of KL under noise: `sum x . stop(S + grad f)`, weighted."""
    noised, _, sigma = noisy(key, jax.lax.stop_gradient(x), *levels)
    pull, found = jax.vmap(slope)(noised), jax.vmap(score)(noised)
    direction = sigma ** (1.0 + recipe.lift) * (found if recipe.corrects else found + pull)
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


SURROGATES = {"kl": kl_surrogate, "fisher": fisher_surrogate}
