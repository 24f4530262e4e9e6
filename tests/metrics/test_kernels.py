"""The closed forms against autodiff, and the tables against the pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.kernels import IMQ, RBF, median, median_bandwidth, squared_distances

KERNELS = {
    "imq": IMQ(),
    "imq of other shape": IMQ(c=0.7, beta=-0.3),
    "rbf": RBF(0.6),
    "rbf with a traced bandwidth": RBF(jnp.asarray(1.3)),
}


def of_one(kernel):
    """k(x, y) of one pair."""
    return lambda x, y: kernel.profile(jnp.sum((x - y) ** 2))[0]


def stein_by_autodiff(kernel, x, y, score_x, score_y):
    """s_x.s_y k + s_x.grad_y k + s_y.grad_x k + trace(grad_x grad_y k), for any kernel."""
    k = of_one(kernel)
    mixed = jax.jacfwd(jax.grad(k, argnums=1), argnums=0)(x, y)
    return (
        score_x @ score_y * k(x, y)
        + score_x @ jax.grad(k, argnums=1)(x, y)
        + score_y @ jax.grad(k, argnums=0)(x, y)
        + jnp.trace(mixed)
    )


def points(dim, n=7):
    return (jax.random.normal(key, (n, dim)) for key in jax.random.split(jax.random.key(dim), 4))


def test_autodiff_would_see_a_wrong_sign():
    x, y, score_x, score_y = (each[:1] for each in points(3))
    swapped = IMQ().stein_gram(x, y, score_y, score_x)[0, 0]
    assert abs(swapped - stein_by_autodiff(IMQ(), x[0], y[0], score_x[0], score_y[0])) > 1e-2


@pytest.mark.parametrize("dim", [1, 2, 12], ids=["on a line", "by differences", "by products"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_tables_hold_the_value_of_each_pair_by_autodiff(kernel, dim):
    x, y, score_x, score_y = points(dim)
    x, score_x = x[:4], score_x[:4]
    over_y = jax.vmap(lambda *pair: stein_by_autodiff(kernel, *pair), in_axes=(None, 0, None, 0))
    pairs = jax.jit(jax.vmap(over_y, in_axes=(0, None, 0, None)))(x, y, score_x, score_y)
    np.testing.assert_allclose(kernel.stein_gram(x, y, score_x, score_y), pairs, rtol=2e-4, atol=2e-5)
    values = jax.vmap(jax.vmap(of_one(kernel), in_axes=(None, 0)), in_axes=(0, None))(x, y)
    np.testing.assert_allclose(kernel.gram(x, y), values, rtol=1e-5, atol=1e-6)


def test_diagonal_of_the_papers_kernel():
    # facts 2.1: k0(x, x) = ||s||^2 + dim.
    score = jnp.array([3.0, -1.0])
    x = jnp.array([0.3, 40.0])
    found = IMQ().stein_gram(x[None], x[None], score[None], score[None])
    np.testing.assert_allclose(found, 10 + 2, rtol=1e-6)


def test_exponents_without_meaning_are_refused():
    with pytest.raises(ValueError, match=r"`beta` must lie between -1 and 0.*got -1\.0"):
        IMQ(beta=-1.0)


def test_small_distances_far_out_keep_their_digits():
    # ||x||^2 + ||y||^2 - 2 x.y gives 0 or 8 here.
    far = jnp.array([[1e4, -3.0]])
    near = far + jnp.array([[0.0, 1e-3]])
    np.testing.assert_allclose(squared_distances(far, near), [[1e-6]], rtol=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (7, 5), (30, 40)])
@pytest.mark.parametrize("kind", ["distinct", "tied", "all zero"])
def test_median_is_exact(shape, kind):
    values = jax.random.exponential(jax.random.key(3), shape)
    values = {"distinct": values, "tied": jnp.round(values), "all zero": 0 * values}[kind]
    assert float(jax.jit(median)(values)) == float(np.median(np.asarray(values)))


def test_median_bandwidth_is_that_of_liu_and_wang():
    x = jax.random.normal(jax.random.key(0), (20, 3))
    table = np.sum((np.asarray(x)[:, None] - np.asarray(x)[None]) ** 2, axis=-1)
    expected = np.sqrt(0.5 * np.median(table) / np.log(21))
    np.testing.assert_allclose(median_bandwidth(x), expected, rtol=1e-5)
