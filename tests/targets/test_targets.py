"""Invariants of every built-in target: one row of the registry, one row of the table."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from pushforward.base import ExactTarget

NAMES = sorted(targets.TARGETS)
# Its gradient is wrong on purpose: see test_published_funnel.py.
HONEST = [name for name in NAMES if name != "published_funnel"]


def over_window(target, zoom, num_points=256):
    """Points spread evenly over the window, blown up about its centre, and two corners of it."""
    window = getattr(target, "window", ((-4.0, 4.0),) * target.dim)
    low, high = np.array(window).T
    centre, half = (low + high) / 2, zoom * (high - low) / 2
    unit = np.random.default_rng(3).uniform(-1.0, 1.0, (num_points, target.dim))
    unit[0], unit[1] = -1.0, 1.0
    return centre + half * unit


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("x64", [False, True])
def test_names_shapes_and_precision(name, x64):
    with jax.enable_x64(x64):
        target, dtype = targets.get(name), jnp.result_type(float)
        assert target.name == name
        x = jax.ShapeDtypeStruct((target.dim,), dtype)
        value, score = jax.eval_shape(lambda x: (target.log_density(x), target.score(x)), x)
        assert (value.shape, value.dtype) == ((), dtype)
        assert (score.shape, score.dtype) == ((target.dim,), dtype)
        leaves = jax.tree.leaves(target)
        assert all(isinstance(leaf, jax.Array) and leaf.dtype == dtype for leaf in leaves)
        if isinstance(target, ExactTarget):
            draws = jax.eval_shape(lambda: target.sample(jax.random.key(0), 3))
            assert (draws.shape, draws.dtype) == ((3, target.dim), dtype)
            assert target.mean is None or target.mean.shape == (target.dim,)
            assert target.covariance is None or target.covariance.shape == (target.dim,) * 2
            assert target.window is not None
            assert len(target.window) == target.dim
            assert all(type(edge) is float for pair in target.window for edge in pair)


@pytest.mark.parametrize("name", NAMES)
def test_score_is_the_derivative_and_both_precisions_agree(name, draws, evaluate):
    points = draws(name)[:8]
    single, _ = evaluate(name, points)
    with jax.enable_x64(True):
        target = targets.get(name)
        step = 1e-5

        @jax.jit
        @jax.vmap
        def measure(x):
            moves = step * jnp.concatenate([jnp.eye(target.dim), -jnp.eye(target.dim)])
            ahead, behind = jax.vmap(target.log_density)(x + moves).reshape(2, -1)
            return (*jax.value_and_grad(target.log_density)(x), (ahead - behind) / (2 * step))

        values, scores, slopes = map(np.asarray, measure(jnp.asarray(points, float)))
    np.testing.assert_allclose(single, values, rtol=2e-5, atol=2e-4)
    if name in HONEST:
        # Truncation is about step^2 f''' / 6; the narrow end of a funnel has the largest f'''.
        scale = 1 + np.abs(scores).max()
        np.testing.assert_allclose(slopes / scale, scores / scale, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_finite_in_the_window_far_away_and_at_the_origin(name, evaluate):
    target = targets.get(name)
    origin = np.zeros((1, target.dim))
    places = [over_window(target, 1.0), over_window(target, 4.0), origin, origin + 1e-4]
    values, scores = evaluate(name, np.concatenate(places))
    assert np.isfinite(values).all()
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    "name", ["donut", "rezende1", "rezende4", "mog2", "published_funnel", "student_t_mixture"]
)
def test_third_derivatives_are_finite(name):
    # Fisher training differentiates the divergence of the score.
    target = targets.get(name)
    third = jax.jit(jax.vmap(jax.jacfwd(jax.jacfwd(target.score))))
    scales = jnp.array([0.0, 1e-20, 1e-7, 1e-6, 1e-3, 1.0])
    assert np.isfinite(third(scales[:, None] * jnp.ones(target.dim))).all()


def test_ring_has_no_slope_at_its_centre():
    ring = targets.get("donut")
    np.testing.assert_array_equal(ring.score(jnp.zeros(2)), 0.0)
    np.testing.assert_array_equal(jax.jit(jax.hessian(ring.log_density))(jnp.zeros(2)), 0.0)
    np.testing.assert_allclose(ring.log_density(jnp.zeros(2)), -12.5)
    # The guard must not reach beyond its place: the ring pulls with force 10 right outside.
    np.testing.assert_allclose(ring.score(jnp.array([3e-6, 0.0])), [10.0, 0.0], rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_equal_targets_share_one_compiled_program(name):
    # Programs are kept by structure, static fields included, and by the shapes of the leaves.
    first, second = targets.get(name), targets.get(name)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert hash(jax.tree.structure(first)) == hash(jax.tree.structure(second))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert jax.typeof(a) == jax.typeof(b)
        assert not a.weak_type


def test_importing_builds_nothing():
    program = "import pushforward.targets, jax; assert not jax.live_arrays()"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"got 'rosenbrok'\. Did you mean 'rosenbrock'\?"):
        targets.get("rosenbrok")
