"""After training: what is put right by the weights of a sampler's own draws, and what they say of it."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Key

from pushforward.latents import Mixture
from pushforward.networks import untouched
from pushforward.training.alternating import Parts
from pushforward.training.doubt import doubt
from pushforward.training.lesson import Lesson
from pushforward.training.marginals import is_standard, repair_marginals
from pushforward.training.repair import repair_weights, weigh
from pushforward.training.scatter import can_scatter, lies_low, scattered


class Mended(NamedTuple):
    """A sampler put right."""

    parts: Parts
    reverted: bool
    """Whether the sampler is the network of `parts`, not the one that training ended with."""
    metrics: dict[str, float]
    found: dict[str, float]
    """What is told of the phase."""
    why: str
    """What speaks against it, if anything."""


def mended(
    key: Key[Array, ""], parts: Parts, trained: Any, lesson: Lesson | None, *, may_revert: bool
) -> Mended:
    """Return the better of start and end of training, its latents repaired; or the teacher's particles."""
    key_weights, key_weigh = jax.random.split(key)
    network, found = trained, {}
    if may_revert:
        before = weigh(key_weigh, parts.target, parts.latent, parts.network).efficiency
        after = weigh(key_weigh, parts.target, parts.latent, trained).efficiency
        found = {"untrained_efficiency": float(before), "trained_efficiency": float(after)}
        if bool(after < before):
            network = parts.network
    if isinstance(parts.latent, Mixture):
        repair = repair_marginals if is_standard(parts.latent) else repair_weights
        latent = repair(key_weights, parts.target, parts.latent, network)
        parts = eqx.tree_at(lambda p: p.latent, parts, latent)
    weighing = weigh(key_weigh, parts.target, parts.latent, network)
    metrics = {"efficiency": float(weighing.efficiency), "log_z": float(weighing.log_z)}
    why = doubt(parts.target.dim, weighing, None if lesson is None else lesson.log_z)
    done = Mended(parts, network is not trained, metrics, found | metrics, why)
    return done if lesson is None or not why else _or_particles(key, done, network, lesson)


def _or_particles(key: Key[Array, ""], done: Mended, network: Any, lesson: Lesson) -> Mended:
    """Return the teacher's particles in place of a map that is far from them."""
    parts, (key_look, key_scatter) = done.parts, jax.random.split(jax.random.fold_in(key, 1))
    target = parts.target
    if not can_scatter(target.dim) or not lies_low(key_look, target, parts.latent, network, lesson.draws):
        return done
    latent = scattered(key_scatter, target, lesson.draws)
    parts = dataclasses.replace(parts, latent=latent, network=untouched(target.dim))
    why = f"{done.why} Its draws are the teacher's particles, moved a little: no map came near them."
    found = {**done.found, "particles": len(latent.weights)}
    return Mended(parts, reverted=True, metrics={"log_z": lesson.log_z}, found=found, why=why)
