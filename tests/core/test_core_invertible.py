"""KL from both sides, for maps whose inverse is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.latents import Normal
from pushforward.networks import coupled
from pushforward.objectives import TwoSidedKL, View
from pushforward.targets import Gaussian

pytestmark = pytest.mark.quick_compilation
SHIFT, N = 0.5, 40_000


def gradient(objective, mean, n=N, target=None):
    """The gradient at the identity, whose draws are standard normal, against N(mean, I) in two dimensions."""
    target = target or Gaussian(np.full(2, mean), np.eye(2))
    view = View(target=target, score=None, progress=jnp.asarray(1.0), latent=Normal(2))
    z = jax.random.normal(jax.random.key(0), (n, 2))
    network = coupled(jax.random.key(1), 2, width=4, depth=1)
    return eqx.filter_jit(eqx.filter_grad(lambda g: objective.surrogate(jax.random.key(2), g, z, view)))(
        network
    )


def shifts(grads):
    """By layer, the gradient in the shift of the one coordinate that it moves."""
    return [float(jnp.sum(net.biases[-1][2:])) for net in grads.nets]


def both(weight=0.0, at=SHIFT):
    draws = at + jax.random.normal(jax.random.key(3), (N, 2))
    return TwoSidedKL(draws, weight)


def test_the_divergence_and_the_weighted_draws_pull_as_the_target_would():
    """Minus its mean; and once more, times the effective share, which is exp(-|mean|^2) for two normals."""
    found = shifts(gradient(both(), SHIFT))
    expected = -SHIFT * (1.0 + np.exp(-2 * SHIFT**2))
    # The weighted mean of 40,000 draws has an error of 0.01; the divergence has none.
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_where_the_weights_are_even_nothing_pulls():
    """Neither the path gradient nor the weighted draws, draw by draw."""
    leaves = jax.tree.leaves(gradient(both(), 0.0, n=64))
    assert max(float(jnp.abs(leaf).max()) for leaf in leaves) < 1e-4
    # Planted: away from it they do.
    assert max(abs(s) for s in shifts(gradient(both(), 0.1))) > 0.05


def test_one_wild_draw_does_not_lead():
    """A target far off: the effective share is next to nothing, and the divergence alone pulls."""
    np.testing.assert_allclose(shifts(gradient(both(), 6.0, n=1024)), -6.0, atol=0.02)


def test_held_draws_pull_by_their_weight():
    """At the end of training by `left` of it."""
    alone, with_draws = (np.asarray(shifts(gradient(both(weight), 0.0))) for weight in (0.0, 1.0))
    np.testing.assert_allclose(with_draws - alone, -0.3 * SHIFT, atol=0.02)


def test_a_draw_without_a_density_is_left_out():
    class Half(Gaussian):
        def log_density(self, x):
            # Neither a number nor a slope beyond 2.
            return super().log_density(x) + jnp.log(jnp.maximum(2.0 - x[0], -1.0)) ** 2

    target = Half(np.full(2, SHIFT), np.eye(2))
    assert np.isfinite(shifts(gradient(both(), SHIFT, target=target))).all()
