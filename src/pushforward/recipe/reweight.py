"""Stage `reweight`: component weights and marginals put right by the weights of the sampler's own draws."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.latents import Mixture
from pushforward.objectives.exact_kl import ExactKL
from pushforward.recipe.judge import against, draws_to_weigh, nothing_to_learn, weigh_well
from pushforward.recipe.marginals import is_standard, reweigh_marginals
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe, Reweight
from pushforward.training.outcome import Outcome
from pushforward.weights import capped, effective_share, log_weights

ASK_NO_MORE = (Outcome.INTERRUPTED, Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.LOST_PROCESS)
"""Outcomes after which the target had better not be asked again."""


def applies(state: State, recipe: Recipe) -> bool:
    """Where the sampler's density is known, and the target can still be asked."""
    known = isinstance(recipe.training.main_objective, ExactKL)
    return known and state.parts is not None and state.outcome not in ASK_NO_MORE


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Put the latents right and say how near the sampler came.

    Where the network that training began with is more efficient, the sampler goes back to it: where
    particles left next to nothing to learn, training may cost more than it brings, and far out in a heavy
    tail it may run away from a start that was good.
    """
    parts = state.parts
    assert parts is not None
    key_compare, key_weights, key_weigh = jax.random.split(key, 3)
    target, latent, network, notes = parts.target, parts.latent, state.network, {}
    if not nothing_to_learn(state, recipe):
        before, after = (
            weigh_well(key_compare, target, latent, each, recipe).efficiency
            for each in (parts.network, network)
        )
        notes = {"untrained_efficiency": float(before), "trained_efficiency": float(after)}
        # Where training ran away, its efficiency may not be a number.
        if not bool(after >= before):
            network = parts.network
    if isinstance(latent, Mixture):
        change = reweigh_marginals if is_standard(latent) else reweigh_components
        latent = change(key_weights, target, latent, network, recipe)
    weighing = weigh_well(key_weigh, target, latent, network, recipe)
    metrics = {"efficiency": float(weighing.efficiency), "log_z": float(weighing.log_z)}
    reverted = network is not state.network
    outcome, why = state.outcome, against(state.dim, weighing, state.log_z, recipe.judge)
    if reverted and outcome is Outcome.DIVERGED:
        outcome = Outcome.UNTRAINED
    if outcome.good or outcome is Outcome.INACCURATE:
        if why:
            # What can go on later is not inaccurate yet.
            outcome = Outcome.OUT_OF_TIME if is_cut(outcome, clock) else Outcome.INACCURATE
        elif outcome is Outcome.INACCURATE:
            # Training was given up, as its notes say, but what there is weighs well.
            outcome = Outcome.FINISHED
    yield state.replace(
        latent=latent,
        network=network,
        metrics=metrics,
        outcome=outcome,
        why=why,
        reverted=reverted,
        notes=notes | metrics,
    )


def is_cut(outcome: Outcome, clock: Clock) -> bool:
    """Whether time ended a run that the same call may take up again."""
    return outcome is Outcome.OUT_OF_TIME and not clock.plans


def reweigh_components(
    key: Key[Array, ""], target: Target, latent: Mixture, network: Any, recipe: Recipe
) -> Mixture:
    """Return the latent with its component weights re-estimated, or as it was if they cannot be trusted."""
    numbers = recipe.reweight
    count = min(draws_to_weigh(target.dim, recipe), numbers.entries // latent.weights.size)
    return _reweighed(key, target, latent, network, count, numbers)


@eqx.filter_jit
def _reweighed(
    key: Key[Array, ""], target: Target, latent: Mixture, network: Any, num_draws: int, numbers: Reweight
) -> Mixture:
    """Take steps of expectation-maximisation on the weights alone.

    `w_c <- sum_i iw_i r_c(z_i)`, less what the draws of the latent themselves are off by,
    `mean_i r_c(z_i) - w_c` at the start: where the sampler is nearly right, that is nearly all of the noise.
    Of coordinates that are mixtures on their own, each has its weights.
    """
    z = latent.sample(key, num_draws)
    w = log_weights(target, latent, network, z)
    share = jax.nn.softmax(capped(w, numbers.cap))
    logs = jax.lax.map(latent.component_log_densities, z, batch_size=4096) - jnp.log(latent.weights)

    def responsibilities(weights):
        return jax.nn.softmax(logs + jnp.log(weights), axis=-1)

    chance = jnp.mean(responsibilities(latent.weights), axis=0) - latent.weights

    def body(_, weights):
        new = jnp.maximum(jnp.tensordot(share, responsibilities(weights), 1) - chance, 1e-3 * weights)
        return new / jnp.sum(new, axis=-1, keepdims=True)

    weights = jax.lax.fori_loop(0, numbers.steps, body, latent.weights)
    good = (effective_share(w) > numbers.trust_from) & jnp.all(jnp.isfinite(weights))
    return eqx.tree_at(lambda law: law.weights, latent, jnp.where(good, weights, latent.weights))
