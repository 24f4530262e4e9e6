"""Objectives of maps whose inverse is known: likelihood of a teacher's draws, and of the sampler's own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.latents import Normal
from pushforward.networks import coupled
from pushforward.objectives import Likelihood, Reweighted, View
from pushforward.targets import Gaussian

pytestmark = pytest.mark.quick_compilation
SHIFT, N = 0.5, 40_000


def gradient(objective, mean, n=N):
    """The gradient at the identity, whose draws are standard normal, against N(mean, I) in two dimensions."""
    target = Gaussian(np.full(2, mean), np.eye(2))
    view = View(target=target, score=None, progress=jnp.asarray(1.0), latent=Normal(2))
    z = jax.random.normal(jax.random.key(0), (n, 2))
    network = coupled(jax.random.key(1), 2, width=4, depth=1)
    return eqx.filter_jit(eqx.filter_grad(lambda g: objective.surrogate(jax.random.key(2), g, z, view)))(
        network
    )


def shifts(grads):
    """By layer, the gradient in the shift of the one coordinate that it moves."""
    return [float(jnp.sum(net.biases[-1][2:])) for net in grads.nets]


def test_own_draws_pull_as_the_targets_would():
    """Minus the mean of the target, times the effective share, which is exp(-|mean|^2) for two normals."""
    found = shifts(gradient(Reweighted(), SHIFT))
    expected = -SHIFT * np.exp(-2 * SHIFT**2)
    # The weighted mean of 40,000 draws has an error of 0.01.
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_where_the_weights_are_even_nothing_pulls():
    leaves = jax.tree.leaves(gradient(Reweighted(), 0.0))
    assert max(float(jnp.abs(leaf).max()) for leaf in leaves) < 1e-4
    # Planted: away from it they do.
    assert max(abs(s) for s in shifts(gradient(Reweighted(), 0.1))) > 0.05


def test_one_wild_draw_does_not_lead():
    """A target far off: the effective share is next to nothing, and so is the pull."""
    assert max(abs(s) for s in shifts(gradient(Reweighted(), 6.0, n=1024))) < 0.02


def test_likelihood_pulls_to_the_buffer():
    buffer = SHIFT + jax.random.normal(jax.random.key(3), (N, 2))
    np.testing.assert_allclose(shifts(gradient(Likelihood(buffer, 8192), 0.0)), -SHIFT, atol=0.06)
