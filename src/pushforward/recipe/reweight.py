"""Stage `reweight`: component weights and marginals put right by the weights of the sampler's own draws.

Training by a divergence hardly sees how much lies beyond the hundredth draw: a neck a quarter too thin there
costs a thousandth of a nat. Weighed draws do see it. Of all laws with independent coordinates, the one whose
marginals are those of the target, pulled back through the map, is nearest to it.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import IndependentMixtures, Latent, Mixture, NormalMixture
from pushforward.objectives.exact_kl import ExactKL
from pushforward.recipe.judge import against, draws_to_weigh, nothing_to_learn, weigh_well
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe, Reweight
from pushforward.training.outcome import Outcome
from pushforward.weights import capped, effective_share, log_weights, usual_share

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
        # Both at the same latents, so that they differ by the network alone.
        z = _drawn(key_compare, latent, draws_to_weigh(state.dim, recipe))
        before, after = (
            usual_share(log_weights(target, latent, each, z), recipe.reweight.parts)
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


@eqx.filter_jit
def _drawn(key: Key[Array, ""], latent: Latent, count: int) -> Float[Array, "n latent"]:
    return latent.sample(key, count)


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


def is_standard(latent: Latent) -> bool:
    """Whether a latent law is one standard normal, as a mixture."""
    if not isinstance(latent, NormalMixture) or latent.weights.size != 1:
        return False
    return not bool(jnp.any(latent.means)) and bool(jnp.all(latent.choleskys[0] == jnp.eye(latent.dim)))


def reweigh_marginals(
    key: Key[Array, ""], target: Target, latent: Mixture, network: Any, recipe: Recipe
) -> Mixture:
    """Return independent coordinates in place of standard normal ones, each with the marginal it should have.

    As it was where the weights cannot be trusted, or where it would be clearly less efficient for it: ends
    are too small a share of all draws for efficiencies to be the better for them.
    """
    numbers = recipe.reweight
    key_draw, key_weigh = jax.random.split(key)
    z = latent.sample(key_draw, draws_to_weigh(target.dim, recipe))
    w = log_weights(target, latent, network, z)
    before = usual_share(w, numbers.parts)
    if not bool(before > numbers.trust_from):
        return latent
    found = marginals_of(z, capped(w, numbers.cap), numbers)
    after = weigh_well(key_weigh, target, found, network, recipe).efficiency
    return found if bool(after > before - numbers.slack) else latent


@eqx.filter_jit
def marginals_of(
    z: Float[Array, "n dim"], log_w: Float[Array, " n"], numbers: Reweight
) -> IndependentMixtures:
    """Return the marginals of standard normal draws `z` with log weights.

    In every bin the normal's own share is taken times the mean weight of the draws there: that leaves out
    what the draws themselves are off by, which is nearly all of the noise where weights are nearly equal.
    """
    weight = jax.nn.softmax(log_w) * len(z)
    edges = np.linspace(-numbers.edge, numbers.edge, numbers.num_bins + 1)
    bins, places = len(edges) + 1, numbers.places
    means = jnp.asarray([*(0.0 for _ in numbers.scales), *places, *(-p for p in places)])
    scales = jnp.asarray([*numbers.scales, *(numbers.place_scale for _ in 2 * places)])
    shares = _shares(means, scales, edges)
    normal = _shares(jnp.zeros(1), jnp.ones(1), edges)[0]

    def one(column):
        at = jnp.searchsorted(jnp.asarray(edges), column)
        held = jnp.zeros(bins).at[at].add(1.0)
        heavy = jnp.zeros(bins).at[at].add(weight)
        wanted = normal * (heavy + numbers.pseudo_count) / (held + numbers.pseudo_count)
        wanted = wanted / wanted.sum()

        def body(_, weights):
            return weights * (shares @ (wanted / (weights @ shares)))

        # Mostly the standard normal, and a little of everything.
        begin = jnp.where((means == 0.0) & (scales == 1.0), 1.0, 0.05)
        return jax.lax.fori_loop(0, numbers.marginal_steps, body, begin / begin.sum())

    weights = jax.lax.map(one, z.T)
    return IndependentMixtures(
        weights, jnp.broadcast_to(means, weights.shape), jnp.broadcast_to(scales, weights.shape)
    )


def _shares(
    means: Float[Array, " k"], scales: Float[Array, " k"], edges: np.ndarray
) -> Float[Array, "k bins"]:
    below = ndtr((jnp.asarray(edges) - means[:, None]) / scales[:, None])
    return jnp.diff(below, axis=1, prepend=0.0, append=1.0)
