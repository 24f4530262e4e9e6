"""The published funnel: the right value, the documented wrong score, and derivatives of that."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from reproduce.targets import published_funnel


@pytest.fixture
def points():
    with jax.enable_x64(True):
        yield targets.funnel().sample(jax.random.key(0), 32)


def documented_score(x):
    """Facts, section 1.5: -(y - 4)/9 is replaced by ((y - 4)^2 - 9)/27."""
    wide, y = x
    pull = (wide - 1) ** 2 * jnp.exp(-y)
    return jnp.stack([-(wide - 1) * jnp.exp(-y), ((y - 4) ** 2 - 9) / 27 + 0.5 * (pull - 1)])


def documented_potential(x):
    """Facts, section 1.5: what the wrong score is the gradient of; improper."""
    wide, y = x
    return -((wide - 1) ** 2) * jnp.exp(-y) / 2 - y / 2 + (y - 4) ** 3 / 81 - (y - 4) / 3


def test_value_is_the_right_one(points):
    right, published = targets.funnel(), published_funnel()
    values = jax.vmap(published.log_density)(points)
    np.testing.assert_array_equal(values, jax.vmap(right.log_density)(points))
    np.testing.assert_array_equal(published.sample(jax.random.key(1), 5), right.sample(jax.random.key(1), 5))


def test_score_is_the_documented_wrong_one(points):
    right, published = targets.funnel(), published_funnel()
    scores = jax.jit(jax.vmap(published.score))(points)
    np.testing.assert_allclose(scores, jax.vmap(documented_score)(points), rtol=1e-10)
    np.testing.assert_allclose(scores, jax.vmap(jax.grad(documented_potential))(points), rtol=1e-10)
    change = scores - jax.vmap(right.score)(points)
    offset = points[:, 1] - 4
    np.testing.assert_array_equal(change[:, 0], 0.0)
    np.testing.assert_allclose(change[:, 1], (offset**2 - 9) / 27 + offset / 9, atol=1e-10)
    assert np.abs(change[:, 1]).max() > 0.1


def test_forward_mode_sees_it_too(points):
    published = published_funnel()
    move = jnp.array([0.3, -0.7])
    _, slope = jax.jvp(published.log_density, (points[0],), (move,))
    np.testing.assert_allclose(slope, documented_score(points[0]) @ move, rtol=1e-10)


@pytest.mark.parametrize("jacobian", [jax.jacfwd, jax.jacrev])
def test_derivatives_of_the_score(points, jacobian):
    published = published_funnel()

    def derivatives(score):
        both = jax.jit(jax.vmap(lambda x: (jacobian(score)(x), jax.jacfwd(jacobian(score))(x))))
        return both(points)

    pairs = zip(derivatives(published.score), derivatives(documented_score), strict=True)
    for ours, documented in pairs:
        np.testing.assert_allclose(ours, documented, rtol=1e-9, atol=1e-12)
