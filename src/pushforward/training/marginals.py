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
from pushforward.training.repair import TRUST_FROM, enough, log_weights, tamed, usual_share, weigh

EDGES = np.linspace(-4.0, 4.0, 65)
"""Of the bins in which draws are counted; beyond them lie two more."""

FEW = 0.5
"""Draws of weight one that every bin is taken to hold besides its own: an empty one says nothing."""

SCALES, PLACES, WIDTH = (0.6, 0.8, 1.0, 1.25, 1.6, 2.0), (0.75, 1.5, 2.25, 3.0), 0.75
"""What marginals are made of: normals at zero, of these scales, and on either side of it, of one width."""

ROUNDS = 5000

SLACK = 0.01
"""By how much two efficiencies, each of its own draws, may differ and still be the same."""


def is_standard(latent: Latent) -> bool:
    """Whether a latent law is one standard normal, as a mixture."""
    if not isinstance(latent, NormalMixture) or latent.weights.size != 1:
        return False
    return not bool(jnp.any(latent.means)) and bool(jnp.all(latent.choleskys[0] == jnp.eye(latent.dim)))


def repair_marginals(key: Key[Array, ""], target: Target, latent: Mixture, network: Any) -> Mixture:
    """Return independent coordinates in place of standard normal ones, each with the marginal it should have.

    As it was where the weights cannot be trusted, or where it would be clearly less efficient for it: ends
    are too small a share of all draws for efficiencies to be the better for them.
    """
    key_draw, key_weigh = jax.random.split(key)
    z = latent.sample(key_draw, enough(target.dim))
    w = log_weights(target, latent, network, z)
    before = usual_share(w)
    if not bool(before > TRUST_FROM):
        return latent
    found = marginals_of(z, tamed(w))
    return found if bool(weigh(key_weigh, target, found, network).efficiency > before - SLACK) else latent


@eqx.filter_jit
def marginals_of(z: Float[Array, "n dim"], log_w: Float[Array, " n"]) -> IndependentMixtures:
    """Return the marginals of standard normal draws `z` with log weights.

    In every bin the normal's own share is taken times the mean weight of the draws there: that leaves out
    what the draws themselves are off by, which is nearly all of the noise where weights are nearly equal.
    """
    weight = jax.nn.softmax(log_w) * len(z)
    bins = len(EDGES) + 1
    means = jnp.asarray([*(0.0 for _ in SCALES), *PLACES, *(-p for p in PLACES)])
    scales = jnp.asarray([*SCALES, *(WIDTH for _ in 2 * PLACES)])
    shares = _shares(means, scales)
    normal = _shares(jnp.zeros(1), jnp.ones(1))[0]

    def one(column):
        at = jnp.searchsorted(jnp.asarray(EDGES), column)
        held = jnp.zeros(bins).at[at].add(1.0)
        heavy = jnp.zeros(bins).at[at].add(weight)
        wanted = normal * (heavy + FEW) / (held + FEW)
        wanted = wanted / wanted.sum()

        def body(_, weights):
            return weights * (shares @ (wanted / (weights @ shares)))

        # Mostly the standard normal, and a little of everything.
        begin = jnp.where((means == 0.0) & (scales == 1.0), 1.0, 0.05)
        return jax.lax.fori_loop(0, ROUNDS, body, begin / begin.sum())

    weights = jax.lax.map(one, z.T)
    return IndependentMixtures(
        weights, jnp.broadcast_to(means, weights.shape), jnp.broadcast_to(scales, weights.shape)
    )


def _shares(means: Float[Array, " k"], scales: Float[Array, " k"]) -> Float[Array, "k bins"]:
    below = ndtr((jnp.asarray(EDGES) - means[:, None]) / scales[:, None])
    return jnp.diff(below, axis=1, prepend=0.0, append=1.0)
