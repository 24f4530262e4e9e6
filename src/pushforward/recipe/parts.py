"""From settings to parts: the one place where names become networks, matchings and optimisers."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from pushforward import matching, objectives
from pushforward.base import Target
from pushforward.latents import Latent, Normal, NormalMixture, Uniform
from pushforward.networks import MLP, Coupled, coupled, mlp, modulated
from pushforward.objectives.base import Objective
from pushforward.objectives.exact_kl import ExactKL
from pushforward.recipe.necks import filled_up
from pushforward.recipe.settings import Settings
from pushforward.recipe.state import known
from pushforward.training.alternating import Parts


class ResidualScore(eqx.Module):
    """The latent law's exact score plus a net that starts at zero: right where an identity map starts."""

    base: Latent
    net: MLP

    def __call__(self, x: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Return the score at one point."""
        return jax.grad(jax.lax.stop_gradient(self.base).log_density)(x) + self.net(x)


def build_parts(
    key: Key[Array, ""],
    target: Target,
    settings: Settings,
    *,
    mixture: Latent | None = None,
    draws: Float[Array, "m dim"] | None = None,
    network: Any = None,
) -> Parts:
    """Return the parts of the alternating algorithm for a target already in its frame.

    Training begins at `network`, the map of the particles, where one of this kind and size is wanted.
    """
    if settings.batch_size is None:
        raise ValueError("`settings` leave `batch_size` open: fill them in with `for_target` first.")
    key_network, key_score = jax.random.split(key)
    latent = build_latent(settings, target.dim, mixture)
    found = build_matching(settings, target)
    needs_net = found is not None and not hasattr(found, "fit")
    fresh = build_network(key_network, settings, latent.dim, target.dim)
    each, decays = settings.score_steps, (settings.score_beta1, settings.beta2)
    ends = settings.final_rate, settings.clip
    return Parts(
        target=target,
        latent=latent,
        objective=build_objective(settings, draws),
        matching=found,
        network=_begin(fresh, network),
        score_net=build_score_net(key_score, settings, latent, target.dim) if needs_net else None,
        optimiser=_adam(settings.learning_rate, settings.num_steps, (settings.beta1, settings.beta2), *ends),
        score_optimiser=_adam(settings.score_learning_rate, settings.num_steps * each, decays, *ends),
        batch_size=settings.batch_size,
        score_batch_size=settings.score_batch_size,
        score_steps=each if needs_net else 0,
        num_steps=settings.num_steps,
        ema=settings.ema,
        score_ema=settings.score_ema,
        tempering=_warming(settings.tempering, settings.tempering_until),
    )


def build_latent(settings: Settings, dim: int, mixture: Latent | None) -> Latent:
    """Return the latent law."""
    if isinstance(settings.latent, Latent):
        return settings.latent
    if settings.latent == "mixture":
        return known(mixture)
    law = Normal if settings.latent == "normal" else Uniform
    return law(settings.latent_dim or dim + settings.extra_latents)


def build_network(key: Key[Array, ""], settings: Settings, latent_dim: int, dim: int) -> Any:
    """Return the sampler's network."""
    if not isinstance(settings.network, str):
        return settings.network(key, latent_dim, dim)
    sizes = {"width": settings.width, "depth": settings.depth, "activation": settings.activation}
    if settings.network == "mlp":
        return mlp(key, latent_dim, dim, skip=settings.skip, **sizes)
    return (coupled if settings.network == "coupled" else modulated)(key, dim, **sizes)


def _begin(fresh: Any, found: Any) -> Any:
    """Return the map that particles were seen through, if it is of the kind and size that is asked for."""
    if not (isinstance(fresh, Coupled) and isinstance(found, Coupled)):
        return fresh
    wide = filled_up(fresh, found)
    if wide is None:
        warnings.warn(
            "training begins at the identity and not at the map of the particles, which follows necks and "
            "has two hidden layers of at least 64 units with 'silu'. Leave `depth`, `width` and `activation` "
            "as they are by default to begin there.",
            stacklevel=2,
        )
    return wide or fresh


def build_score_net(key: Key[Array, ""], settings: Settings, latent: Latent, dim: int) -> Any:
    """Return the score net; beside a mixture latent, a correction to the mixture's own score."""
    residual = isinstance(latent, NormalMixture)
    width, depth, activation = settings.score_width, settings.score_depth, settings.score_activation
    net = mlp(key, dim, dim, width=width, depth=depth, activation=activation, zero_last=residual)
    return ResidualScore(latent, net) if residual else net


def build_matching(settings: Settings, target: Target) -> Any:
    """Return the matching, or `None` for objectives that need no score."""
    fitted, name = settings.main_objective.wants.fitted, settings.matching
    if fitted == "critic":
        return matching.Critic(target)
    if fitted == "nothing" or name == "none":
        return None
    if not isinstance(name, str):
        return name
    numbers = {"sliced": (settings.num_projections,), "denoising": (settings.sigma,)}.get(name, ())
    # Looked up by name: the modules of the others need not be loaded.
    return getattr(matching, name.capitalize())(*numbers)


def build_objective(settings: Settings, draws: Float[Array, "m dim"] | None) -> Objective:
    """Return the objective, with the pull to the particles where one is asked for."""
    main, weight = settings.main_objective, settings.forward_weight
    if weight == 0.0:
        return main
    if settings.network == "coupled" and isinstance(main, ExactKL):
        return objectives.TwoSidedKL(known(draws), weight, settings.forward_left, settings.rise)
    shares = 1.0, _fading(weight, settings.forward_until)
    return objectives.Combined((main, objectives.Forward(known(draws))), shares)


# Functions are equal only to themselves: made once for each choice, so that a second fit with
# the same settings finds its program compiled.
Schedule = Callable[[Float[Array, ""]], Float[Array, ""]]


@cache
def _fading(weight: float, until: float) -> Schedule:
    return lambda progress: weight * jnp.maximum(0.0, 1.0 - progress / until)


@cache
def _warming(start: float, until: float) -> Schedule | None:
    if start == 1.0:
        return None
    return lambda progress: jnp.minimum(1.0, start + (1.0 - start) * progress / until)


@cache
def _adam(
    rate: float, num_steps: int, decays: tuple[float, float], final_rate: float, clip: float
) -> optax.GradientTransformation:
    schedule = optax.cosine_decay_schedule(rate, num_steps, alpha=final_rate)
    return optax.chain(optax.clip_by_global_norm(clip), optax.adam(schedule, *decays))
