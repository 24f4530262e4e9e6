"""Stage `reweight`: component weights and marginals put right by the weights of the sampler's own draws.

Training by a divergence hardly sees how much lies beyond the hundredth draw: a neck a quarter too thin there
costs a thousandth of a nat. Weighed draws do see it. Of all laws with independent coordinates, the one whose
marginals are those of the target, pulled back through the map, is nearest to it.
"""

from collections.abc import Iterator

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import ndtr

from pushforward.base import Target
from pushforward.host import component_logs, generator, on_device, sampled
from pushforward.latents import IndependentMixtures, Latent, Mixture, NormalMixture
from pushforward.objectives.exact_kl import ExactKL
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.judge import against, draws_to_weigh, weigh
from pushforward.recipe.mixtures import shares_of
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, known
from pushforward.recipe.table import Recipe, Reweight
from pushforward.training.outcome import Outcome
from pushforward.weights import effective, usual

ASK_NO_MORE = (Outcome.INTERRUPTED, Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.LOST_PROCESS)
"""Outcomes after which the target had better not be asked again."""


def applies(state: State, recipe: Recipe) -> bool:
    """Where the sampler's density is known, and the target can still be asked."""
    known = isinstance(recipe.training.main_objective, ExactKL)
    return known and state.parts is not None and state.outcome not in ASK_NO_MORE


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Put the latents right and say how near the sampler came.

    Where what there was before the training is more efficient, the sampler goes back to it: where particles
    left next to nothing to learn, training may cost more than it brings, and far out in a heavy tail it may
    run away from a start that was good.
    """
    parts, before, target, rng = known(state.parts), known(state.before), state.target, generator(key)
    state = state.replace(latent=reweighed(rng, target, state.law, recipe).latent)
    if not before.has_sampler:
        before = state.replace(latent=parts.latent, network=parts.network)
    # Where training ran away, its efficiency may not be a number.
    was, has = (weigh(rng, target, each.law, recipe).efficiency for each in (before, state))
    reverted = not has >= was - recipe.reweight.slack
    notes = {"untrained_efficiency": was, "trained_efficiency": has}
    if reverted:
        latent = reweighed(rng, target, before.law, recipe).latent
        state = state.replace(frame=before.frame, latent=latent, network=before.network, draws=before.draws)
    weighing = weigh(rng, target, state.law, recipe)
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
    metrics = weighing._asdict()
    state = state.replace(metrics=metrics, outcome=outcome, why=why, reverted=reverted)
    yield state.replace(notes=notes | metrics)


def is_cut(outcome: Outcome, clock: Clock) -> bool:
    """Whether time ended a run that the same call may take up again."""
    return outcome is Outcome.OUT_OF_TIME and not clock.plans


def capped(log_w: np.ndarray, nats: float) -> np.ndarray:
    """Return log weights cut so many nats above the median: a handful of wild draws must not decide."""
    return np.minimum(log_w, np.median(log_w) + nats)


def reweighed(rng: np.random.Generator, target: Target, law: Approximation, recipe: Recipe) -> Approximation:
    """Return the law with its latents put right by its own weighted draws, or as it was.

    A standard normal gets independent coordinates, each with the marginal that it should have; a mixture gets
    other weights. Where a few draws carry all the weight, or the law would be clearly less efficient for it,
    nothing changes: ends are too small a share of all draws for efficiencies to be the better for them.
    """
    numbers = recipe.reweight
    if not isinstance(law.latent, Mixture):
        return law
    count = min(draws_to_weigh(target.dim, recipe), numbers.entries // law.latent.weights.size)
    z = sampled(rng, law.latent, count)
    w = law.weights(target, z, recipe.search.tile)
    before = usual(w, numbers.parts)
    if not before > numbers.trust_from:
        return law
    if not is_standard(law.latent):
        return law._replace(latent=reweighed_by(law.latent, z, w, numbers))
    found = law._replace(latent=marginals_of(z, capped(w, numbers.cap), numbers))
    after = weigh(rng, target, found, recipe).efficiency
    return found if after > before - numbers.slack else law


def reweighed_by(latent: Latent, z: np.ndarray, w: np.ndarray, numbers: Reweight) -> Latent:
    """Take steps of expectation-maximisation on the weights of components, by weighted draws of the mixture.

    `w_c <- sum_i iw_i r_c(z_i)`, less what the draws of the latent themselves are off by,
    `mean_i r_c(z_i) - w_c` at the start: where the sampler is nearly right, that is nearly all of the noise.
    Of coordinates that are mixtures on their own, each has its weights.
    """
    assert isinstance(latent, Mixture)
    if not effective(w) > numbers.trust_from:
        return latent
    begin = np.asarray(latent.weights, np.float64)
    share, logs = shares_of(capped(w, numbers.cap)), component_logs(latent, z) - np.log(begin)
    chance, weights = shares_of(logs + np.log(begin)).mean(axis=0) - begin, begin
    for _ in range(numbers.steps):
        new = np.tensordot(share, shares_of(logs + np.log(weights)), 1) - chance
        new = np.maximum(new, 1e-3 * weights)
        weights = new / new.sum(axis=-1, keepdims=True)
    return eqx.tree_at(lambda law: law.weights, latent, on_device(weights))


def is_standard(latent: Latent) -> bool:
    """Whether a latent law is one standard normal, as a mixture."""
    if not isinstance(latent, NormalMixture) or latent.weights.size != 1:
        return False
    means, factors = np.asarray(latent.means), np.asarray(latent.choleskys)
    return not means.any() and bool(np.all(factors == np.eye(latent.dim)))


def marginals_of(
    z: Float[np.ndarray, "n dim"], log_w: Float[np.ndarray, " n"], numbers: Reweight
) -> IndependentMixtures:
    """Return the marginals of standard normal draws `z` with log weights.

    In every bin the normal's own share is taken times the mean weight of the draws there: that leaves out
    what the draws themselves are off by, which is nearly all of the noise where weights are nearly equal.
    """
    weight = shares_of(log_w) * len(z)
    edges = np.linspace(-numbers.edge, numbers.edge, numbers.num_bins + 1)
    bins, places = len(edges) + 1, np.asarray(numbers.places)
    means = np.concatenate([np.zeros(len(numbers.scales)), places, -places])
    scales = np.append(numbers.scales, np.full(2 * len(places), numbers.place_scale))
    # The share that each normal has of every bin, and the standard one at last.
    below = ndtr((edges - np.append(means, 0.0)[:, None]) / np.append(scales, 1.0)[:, None])
    found = np.diff(below, axis=1, prepend=0.0, append=1.0)
    shares, normal = found[:-1], found[-1]
    at = np.searchsorted(edges, z)
    held = np.stack([np.bincount(column, minlength=bins) for column in at.T])
    heavy = np.stack([np.bincount(column, weight, minlength=bins) for column in at.T])
    wanted = normal * (heavy + numbers.pseudo_count) / (held + numbers.pseudo_count)
    wanted /= wanted.sum(axis=1, keepdims=True)
    # Mostly the standard normal, and a little of everything.
    begin = np.where((means == 0.0) & (scales == 1.0), 1.0, 0.05)
    weights = np.tile(begin / begin.sum(), (z.shape[1], 1))
    for _ in range(numbers.marginal_steps):
        weights *= (wanted / (weights @ shares)) @ shares.T
    fields = weights, np.broadcast_to(means, weights.shape), np.broadcast_to(scales, weights.shape)
    return IndependentMixtures(*map(on_device, fields))
