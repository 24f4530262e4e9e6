"""After training: what is put right by the weights of a sampler's own draws, and what they say of it."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Key

from pushforward.latents import Mixture
from pushforward.networks import untouched
from pushforward.training.alternating import Parts
from pushforward.training.doubt import doubt, least_efficiency
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
    key: Key[Array, ""],
    parts: Parts,
    trained: Any,
    lesson: Lesson | None,
    *,
    may_revert: bool,
    may_scatter: bool,
    deadline: float = float("inf"),
) -> Mended:
    """Return a trained network with its latents repaired.

    Or the network that training began with, where it `may_revert` and that one is more efficient; or the
    teacher's particles, where it `may_scatter` and no map came near them; they walk on until the `deadline`
    at most.
    """
    key_weights, key_weigh = jax.random.split(key)
    network, found = trained, {}
    if may_revert:
        before = weigh(key_weigh, parts.target, parts.latent, parts.network).efficiency
        after = weigh(key_weigh, parts.target, parts.latent, trained).efficiency
        found = {"untrained_efficiency": float(before), "trained_efficiency": float(after)}
        # Where training ran away, its efficiency may not be a number.
        if not bool(after >= before):
            network = parts.network
    if isinstance(parts.latent, Mixture):
        repair = repair_marginals if is_standard(parts.latent) else repair_weights
        latent = repair(key_weights, parts.target, parts.latent, network)
        parts = eqx.tree_at(lambda p: p.latent, parts, latent)
    weighing = weigh(key_weigh, parts.target, parts.latent, network)
    metrics = {"efficiency": float(weighing.efficiency), "log_z": float(weighing.log_z)}
    why = doubt(parts.target.dim, weighing, None if lesson is None else lesson.log_z)
    done = Mended(parts, network is not trained, metrics, found | metrics, why)
    # An efficient map with another `log Z` may be the one that is right.
    poor = not metrics["efficiency"] >= least_efficiency(parts.target.dim)
    if not (may_scatter and poor and lesson is not None and can_scatter(parts.target.dim)):
        return done
    key_look, key_scatter = jax.random.split(jax.random.fold_in(key, 1))
    if not lies_low(key_look, parts.target, parts.latent, network, lesson.draws):
        return done
    latent = scattered(key_scatter, parts.target, lesson.draws, deadline)
    return Mended(
        dataclasses.replace(parts, latent=latent, network=untouched(parts.target.dim)),
        reverted=True,
        metrics={"log_z": lesson.log_z},
        found=found | {f"map_{n}": v for n, v in metrics.items()} | {"particles": len(latent.weights)},
        why=f"{why} The sampler is the teacher's particles instead, each moved a little.",
    )
