"""The ends of a latent law put right, coordinate by coordinate, by the weights of the sampler's own draws.

Training by a divergence hardly sees how much lies beyond the hundredth draw: a neck a quarter too thin there
costs a thousandth of a nat. Weighed draws do see it. Of all laws with independent coordinates, the one whose
marginals are those of the target, pulled back through the map, is nearest to it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import IndependentMixtures, Latent, Mixture, NormalMixture
from pushforward.recipe.judge import draws_to_weigh, weigh_well
from pushforward.recipe.table import Recipe, Reweight
from pushforward.weights import capped, log_weights, usual_share


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
