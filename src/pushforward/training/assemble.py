"""From settings to parts: the one place where names become networks, objectives and optimisers."""

from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import Latent, Normal, NormalMixture, Uniform
from pushforward.matching import Critic, Denoising, Exact, Kernel, Sliced
from pushforward.networks import MLP, Coupled, coupled, mlp, modulated
from pushforward.objectives import (
    KL,
    KSD,
    Combined,
    ExactKL,
    Fisher,
    FisherStein,
    Forward,
    Likelihood,
    Objective,
    Reweighted,
    SteinGAN,
)
from pushforward.training.alternating import Parts
from pushforward.training.settings import Settings

FORWARD_UNTIL = 0.6
"""Share of the steps after which the pull to the teacher is gone: its errors must not be inherited."""

RISE = (0.15, 0.4)
"""Shares of the steps between which the target's weight rises, where the teacher's draws come first."""


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
    mixture: Latent | None,
    draws: Float[Array, "m dim"] | None,
    network: Coupled | None = None,
) -> Parts:
    """Return the parts of the alternating algorithm for a target already in its frame.

    Training begins at `network`, the teacher's map, where there is one of the wanted kind and size.
    """
    key_network, key_score = jax.random.split(key)
    latent = build_latent(settings, target.dim, mixture)
    matching = build_matching(settings, target)
    needs_net = matching is not None and not isinstance(matching, Kernel)
    return Parts(
        target=target,
        latent=latent,
        objective=build_objective(settings, draws),
        matching=matching,
        network=_begin(build_network(key_network, settings, latent.dim, target.dim), network),
        score_net=build_score_net(key_score, settings, latent, target.dim) if needs_net else None,
        optimiser=_adam(
            settings.learning_rate, settings.final_rate, settings.num_steps, settings.beta1, settings.clip
        ),
        score_optimiser=_adam(
            settings.score_learning_rate,
            settings.final_rate,
            settings.num_steps * settings.score_steps,
            0.9,
            settings.clip,
        ),
        batch_size=settings.batch_size,
        score_batch_size=settings.score_batch_size,
        score_steps=settings.score_steps if needs_net else 0,
        num_steps=settings.num_steps,
        ema=settings.ema,
        score_ema=settings.score_ema,
        tempering=_warming(settings.tempering) if settings.tempering != 1.0 else None,
    )


def build_latent(settings: Settings, dim: int, mixture: Latent | None) -> Latent:
    """Return the latent law."""
    if settings.latent == "mixture":
        assert mixture is not None
        return mixture
    return {"normal": Normal, "uniform": Uniform}[settings.latent](
        settings.latent_dim or dim + settings.extra_latents
    )


def build_network(key: Key[Array, ""], settings: Settings, latent_dim: int, dim: int) -> Any:
    """Return the sampler's network."""
    sizes = {"width": settings.width, "depth": settings.depth, "activation": settings.activation}
    if settings.network == "modulated":
        return modulated(key, dim, **sizes)
    if settings.network == "coupled":
        return coupled(key, dim, **sizes)
    return mlp(key, latent_dim, dim, skip=settings.skip, **sizes)


def _begin(fresh: Any, taught: Coupled | None) -> Any:
    shapes = [[leaf.shape for leaf in jax.tree.leaves(each)] for each in (fresh, taught)]
    return taught if isinstance(fresh, Coupled) and shapes[0] == shapes[1] else fresh


def build_score_net(key: Key[Array, ""], settings: Settings, latent: Latent, dim: int) -> Any:
    """Return the score net; beside a mixture latent, a correction to the mixture's own score."""
    residual = isinstance(latent, NormalMixture)
    net = mlp(
        key,
        dim,
        dim,
        width=settings.score_width,
        depth=settings.score_depth,
        activation=settings.score_activation,
        zero_last=residual,
    )
    return ResidualScore(latent, net) if residual else net


def build_matching(settings: Settings, target: Target) -> Any:
    """Return the matching, or `None` for objectives that need no score."""
    if settings.objective == "fisher_stein":
        return Critic(target)
    if settings.objective in ("exact_kl", "ksd", "steingan"):
        return None
    return {
        "exact": Exact,
        "sliced": lambda: Sliced(settings.num_projections),
        "denoising": lambda: Denoising(settings.sigma),
        "kernel": Kernel,
        "none": lambda: None,
    }[settings.matching]()


def build_objective(settings: Settings, draws: Float[Array, "m dim"] | None) -> Objective:
    """Return the objective, with the fading pull to the teacher's draws where one is asked for."""
    fisher = Fisher(settings.fisher_form, settings.sigma)
    share = settings.fisher_weight
    main = {
        "kl": KL,
        "fisher": lambda: fisher,
        "combined": lambda: Combined((KL(), fisher), (1.0 - share, share)),
        "fisher_stein": FisherStein,
        "exact_kl": ExactKL,
        "ksd": KSD,
        "steingan": SteinGAN,
    }[settings.objective]()
    if settings.forward_weight == 0.0:
        return main
    assert draws is not None
    if settings.network == "coupled":
        # First the teacher's draws alone: a map far from the target would be led by its few wildest draws.
        # They stay to the end, but less: KL alone leaves mass out where the map cannot follow the target.
        parts = main, Reweighted(), Likelihood(draws)
        return Combined(parts, (_rising, _rising, _yielding(settings.forward_weight)))
    return Combined((main, Forward(draws)), (1.0, _fading(settings.forward_weight)))


# Functions are equal only to themselves: made once for each choice, so that a second fit with
# the same settings finds its program compiled.


@cache
def _fading(weight: float) -> Callable[[Float[Array, ""]], Float[Array, ""]]:
    return lambda progress: weight * jnp.maximum(0.0, 1.0 - progress / FORWARD_UNTIL)


def _rising(progress: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.clip((progress - RISE[0]) / (RISE[1] - RISE[0]), 0.0, 1.0)


@cache
def _yielding(weight: float) -> Callable[[Float[Array, ""]], Float[Array, ""]]:
    return lambda progress: weight * (1.0 - 0.7 * _rising(progress))


@cache
def _warming(start: float) -> Callable[[Float[Array, ""]], Float[Array, ""]]:
    return lambda progress: jnp.minimum(1.0, start + (1.0 - start) * 3.0 * progress)


@cache
def _adam(
    rate: float, final_rate: float, num_steps: int, beta1: float, clip: float
) -> optax.GradientTransformation:
    schedule = optax.cosine_decay_schedule(rate, num_steps, alpha=final_rate)
    return optax.chain(optax.clip_by_global_norm(clip), optax.adam(schedule, b1=beta1, b2=0.99))
