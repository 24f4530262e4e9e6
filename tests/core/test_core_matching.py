"""Matchings against their minimisers on Gaussians, and the divergences they are made of.

The score model is linear, `s(x) = c - A x`, so that every loss is a quadratic of its parameters and one
Newton step from anywhere lands on the minimiser.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from pushforward.divergence import value_and_divergence, value_and_quadratic_form
from pushforward.matching import Critic, Denoising, Exact, Kernel, Sliced
from pushforward.networks import mlp
from pushforward.targets import Gaussian

pytestmark = pytest.mark.quick_compilation
KEY = jax.random.key(1)
NODES = np.sqrt(3.0) * np.array([-1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
MEAN = np.array([0.7, -1.6])
COVARIANCE = np.array([[1.3, -0.5], [-0.5, 0.6]])


class Linear(eqx.Module):
    """`s(x) = c - A x`."""

    a: jax.Array
    c: jax.Array

    def __call__(self, x):
        return self.c - self.a @ x


def nodes(dim):
    """Points with a standard normal's moments up to the fifth (Gauss-Hermite, equally weighted)."""
    return jnp.asarray(np.stack(np.meshgrid(*[NODES] * dim), axis=-1).reshape(-1, dim))


def gaussian_points():
    return MEAN + nodes(2) @ np.linalg.cholesky(COVARIANCE).T


def truth(sigma=0.0):
    precision = np.linalg.inv(COVARIANCE + sigma**2 * np.eye(2))
    return Linear(jnp.asarray(precision), jnp.asarray(precision @ MEAN))


@eqx.filter_jit
def minimiser(matching, x, key=KEY):
    """The linear score of least loss: one Newton step from zero."""
    flat, rebuild = ravel_pytree(Linear(jnp.zeros((2, 2)), jnp.zeros(2)))

    def loss(p):
        return matching.loss(rebuild(p), x, key)

    return rebuild(-jnp.linalg.solve(jax.hessian(loss)(flat), jax.grad(loss)(flat)))


def assert_same(found, wanted, **tolerance):
    np.testing.assert_allclose(found.a, wanted.a, **tolerance)
    np.testing.assert_allclose(found.c, wanted.c, **tolerance)


def test_exact_matching_finds_the_score(double):
    x = gaussian_points()
    assert_same(minimiser(Exact(), x), truth(), atol=1e-9)
    slope = jax.grad(lambda s: Exact().loss(s, x, KEY))(truth())
    np.testing.assert_allclose(slope.a, 0, atol=1e-12)
    # Planted: the smoothed score is another one.
    assert np.abs(jax.grad(lambda s: Exact().loss(s, x, KEY))(truth(0.1)).a).max() > 1e-3


@pytest.mark.parametrize("weight", [0.3, 2.0])
def test_critic_finds_the_scaled_difference_of_scores(double, weight):
    """Proposition 1: `f* = (s_q - s_p) / (2 lambda)`, here of two Gaussians and hence linear."""
    target = Gaussian([0.5, 2.0], [[0.9, 0.3], [0.3, 2.1]])
    q = target.whiten.T @ target.whiten
    p = truth()
    wanted = Linear((q - p.a) / (2 * weight), (q @ target.loc - p.c) / (2 * weight))
    assert_same(minimiser(Critic(target, weight), gaussian_points()), wanted, atol=1e-9)


@pytest.mark.parametrize("sigma", [0.05, 0.6, 2.5])
def test_denoising_finds_the_smoothed_score(double, monkeypatch, sigma):
    points = gaussian_points()
    noise = jnp.tile(nodes(2), (len(points), 1))
    # Every point meets every noise, so that the expectation is exact.
    monkeypatch.setattr(jax.random, "normal", lambda key, shape, dtype: noise.reshape(shape))
    found = minimiser(Denoising(sigma), jnp.repeat(points, 36, axis=0))
    assert_same(found, truth(sigma), atol=1e-7)
    assert np.abs(found.a - truth().a).max() > 1e-3  # not the score of the draws themselves


def test_denoising_with_its_own_noise():
    """Six errors, each beyond 5 standard errors with probability 6e-7: one new key in 280,000 fails."""
    sigma, n = 0.6, 20_000
    x = MEAN + jax.random.normal(KEY, (n, 2)) @ np.linalg.cholesky(COVARIANCE).T

    def one(key):
        key_rows, key_noise = jax.random.split(key)
        return minimiser(Denoising(sigma), x[jax.random.choice(key_rows, n, (2_000,))], key_noise)

    found = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(4), 50))
    # The draws themselves are a sample: the truth is the smoothed score of their own covariance.
    centre, spread = np.mean(x, 0), np.cov(x.T, bias=True)
    z = []
    for smoothing in (sigma, 0.0):
        precision = np.linalg.inv(spread + smoothing**2 * np.eye(2))
        gap = np.concatenate([found.a.reshape(50, 4) - precision.ravel(), found.c - precision @ centre], 1)
        z.append(np.abs(gap.mean(0) / (gap.std(0) / np.sqrt(50))).max())
    # Regression on 2,000 rows has a bias of 1/2,000, a fiftieth of the error of one fit and a seventh
    # of the error of their mean: six standard errors leave room for it.
    assert z[0] < 6
    assert z[1] > 6  # planted: the score without smoothing


def fields():
    keys = jax.random.split(jax.random.key(2), 2)
    return mlp(keys[0], 3, 3, width=8), jax.random.normal(keys[1], (40, 3))


def test_sliced_matching_tends_to_exact_matching():
    """The mean square of 200 errors of a loss, times the projections, is level to within sampling error.

    Each is a mean of 200 squares of near normal errors, hence within a factor 1.6 of another with
    probability 1 - 1e-5.
    """
    field, x = fields()
    exact = jax.jit(Exact().loss)(field, x, KEY)
    keys = jax.random.split(jax.random.key(3), 200)
    scaled, means = [], []
    for m in (1, 4, 16):
        losses = jax.jit(jax.vmap(lambda k, m=m: Sliced(m).loss(field, x, k)))(keys)
        errors = np.asarray(losses - exact)
        scaled.append(np.mean(errors**2) * m)
        means.append(abs(errors.mean()) / (errors.std() / np.sqrt(len(errors))))
    assert max(means) < 5
    assert max(scaled) / min(scaled) < 1.6
    assert min(scaled) > 1e-6  # there was an error to shrink


def test_sliced_matching_is_exact_in_one_dimension():
    field, x = mlp(KEY, 1, 1, width=8), jax.random.normal(KEY, (40, 1))
    sliced, exact = jax.jit(lambda f: (Sliced(1).loss(f, x, KEY), Exact().loss(f, x, KEY)))(field)
    np.testing.assert_allclose(sliced, exact, rtol=1e-6)


def test_sliced_matching_finds_the_score_on_average(double):
    """All four sign vectors as the four projections: the mean over them is the trace exactly."""
    signs = jnp.asarray([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            jax.random, "rademacher", lambda key, shape, dtype: jnp.broadcast_to(signs[:, None], shape)
        )
        found = minimiser(Sliced(4), gaussian_points())
    assert_same(found, truth(), atol=1e-9)


@pytest.mark.parametrize("dim", [1, 3, 7])
def test_divergence_is_the_trace_of_the_jacobian(dim):
    field = mlp(KEY, dim, dim, width=8)
    x, v = jax.random.normal(jax.random.key(dim), (2, dim))

    @jax.jit
    def everything(x, v):
        return (
            (field(x), jax.jacfwd(field)(x)),
            value_and_divergence(field, x),
            value_and_quadratic_form(field, x, v),
        )

    (value, jacobian), exact, projected = everything(x, v)
    np.testing.assert_allclose(exact[1], np.trace(jacobian), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(projected[1], v @ jacobian @ v, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(exact[0], value, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(projected[0], value, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def spectral():
    cholesky = np.linalg.cholesky(COVARIANCE)
    x = MEAN + np.asarray(jax.random.normal(jax.random.key(11), (512, 2))) @ cholesky.T
    return jax.jit(Kernel().fit)(jnp.asarray(x, float)), x


def test_spectral_score_of_a_correlated_gaussian(spectral):
    """Within two standard deviations of the centre, a root mean square error below a quarter of the score's."""
    score, x = spectral
    fresh = (
        MEAN + np.asarray(jax.random.normal(jax.random.key(12), (512, 2))) @ np.linalg.cholesky(COVARIANCE).T
    )
    for points in (x, fresh):  # its own points, and points it has not seen
        whitened = np.linalg.solve(np.linalg.cholesky(COVARIANCE), (points - MEAN).T)
        points = points[np.sum(whitened**2, 0) < 4]
        found = np.asarray(jax.vmap(score)(jnp.asarray(points, float)))

        def error(wanted, found=found):
            return np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2))

        exact = np.asarray(jax.vmap(truth())(points))
        assert error(exact) < 0.25
        # Planted: the score of the same law with its correlation turned round, and of one half as wide again.
        turned = np.linalg.inv(COVARIANCE * np.array([[1, -1], [-1, 1]]))
        assert error(-(points - MEAN) @ turned) > 0.25
        assert error(exact / 1.5) > 0.25


def test_spectral_score_is_twice_differentiable(double, spectral):
    score = jax.tree.map(lambda a: a.astype(float), spectral[0])
    x = jnp.asarray(MEAN + 0.3)
    second = jax.jit(jax.jacfwd(jax.jacfwd(score)))(x)
    steps = 1e-5 * jnp.eye(2)
    first = jax.jit(jax.jacfwd(score))
    by_differences = jnp.stack([(first(x + h) - first(x - h)) / 2e-5 for h in steps], axis=-1)
    np.testing.assert_allclose(second, by_differences, atol=1e-5)
    assert np.abs(second).max() > 1e-2


@pytest.mark.parametrize("weight", [0.8])
def test_a_trained_critic_finds_proposition_one(weight):
    """A small MLP under Adam comes within a tenth (root mean square, on p) of `(s_q - s_p) / (2 lambda)`."""
    p = Gaussian(MEAN, COVARIANCE)
    q = Gaussian([0.2, -0.9], [[0.8, 0.1], [0.1, 1.1]])
    matching = Critic(q, weight)
    num_steps = 500
    optimiser = optax.adam(optax.cosine_decay_schedule(1e-2, num_steps))

    @eqx.filter_jit
    def train(critic):
        def body(carry, key):
            critic, state = carry
            x = p.sample(key, 256)
            grads = jax.grad(lambda f: matching.loss(f, x, key))(critic)
            updates, state = optimiser.update(grads, state)
            return (optax.apply_updates(critic, updates), state), None

        keys = jax.random.split(jax.random.key(21), num_steps)
        return jax.lax.scan(body, (critic, optimiser.init(critic)), keys)[0][0]

    critic = train(mlp(KEY, 2, 2, width=32, depth=2))
    x = p.sample(jax.random.key(22), 2_000)
    found = jax.vmap(critic)(x)

    def error(lambda_):
        wanted = jax.vmap(lambda y: (q.score(y) - p.score(y)) / (2 * lambda_))(x)
        return float(jnp.sqrt(jnp.mean((found - wanted) ** 2) / jnp.mean(wanted**2)))

    assert error(weight) < 0.1
    assert error(1.2 * weight) > 0.1  # planted: another lambda


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Denoising(0.0), r"`sigma` must be a finite number above 0; got 0.0"),
        (lambda: Sliced(0), r"`num_projections` must be a positive integer; got 0"),
        (lambda: Kernel(1.5), r"`energy` is a share of the trace, at most 1; got 1.5"),
        (lambda: Critic(Gaussian([0.0], [[1.0]]), 0.0), r"`weight` must be a finite number above 0"),
    ],
)
def test_bad_arguments_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
