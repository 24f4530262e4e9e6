"""Objectives against divergences of Gaussians in closed form.

Latents are equally weighted points that have a normal's moments up to the fifth (Gauss-Hermite's
three nodes with weights 1/6, 4/6, 1/6), so that expectations of the quadratics at hand are exact.
"""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.latents import Normal
from pushforward.objectives import (
    KL,
    KSD,
    Combined,
    ExactKL,
    Fisher,
    FisherStein,
    Forward,
    SteinGAN,
    View,
)
from pushforward.targets import Gaussian

pytestmark = pytest.mark.quick_compilation
KEY = jax.random.key(0)
NODES = np.sqrt(3.0) * np.array([-1.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def nodes(dim):
    """Every combination of the nodes: `6 ** dim` latents."""
    return jnp.asarray(np.stack(np.meshgrid(*[NODES] * dim), axis=-1).reshape(-1, dim))


class Line(eqx.Module):
    """`x = m + t z`, whose law is N(m, t^2)."""

    m: jax.Array
    t: jax.Array

    def __call__(self, z):
        return self.m + self.t * z


class Plane(eqx.Module):
    """`x = b + L z`, whose law is N(b, L L^T)."""

    b: jax.Array
    factor: jax.Array

    def __call__(self, z):
        return self.b + self.factor @ z


def line(m, t):
    return Line(jnp.asarray(m), jnp.asarray(t))


def plane():
    return Plane(jnp.asarray([0.4, -1.1]), jnp.asarray([[0.7, 0.3], [-0.5, 1.9]]))


def _affine(mean, precision, x):
    return -precision @ (x - mean)


def gaussian_score(mean, covariance):
    """The score of a Gaussian that does not move with the network's parameters."""
    # Arrays bound as arguments: one compilation serves all of them.
    return eqx.Partial(_affine, mean, jnp.linalg.inv(covariance))


def own_score(network, sigma=0.0):
    """The score of the network's law, smoothed by N(0, sigma^2), frozen."""
    if isinstance(network, Line):
        return gaussian_score(network.m[None], (network.t**2 + sigma**2)[None, None])
    covariance = network.factor @ network.factor.T + sigma**2 * jnp.eye(2)
    return gaussian_score(network.b, covariance)


@eqx.filter_jit
def _gradient(objective, network, target, score, z, key, progress):
    view = View(target=target, score=score, progress=progress, latent=Normal(z.shape[1]))
    return eqx.filter_grad(lambda net: objective.surrogate(key, net, z, view))(network)


def gradient(objective, network, target, score, z, *, key=KEY, progress=0.0):
    return _gradient(objective, network, target, score, z, key, jnp.asarray(progress))


def _critic(score, target, weight, x):
    return (target.score(x) - score(x)) / (2 * weight)


def _fading(progress):
    return 2.0 * (1.0 - progress)


def standard(dim=1):
    return Gaussian(np.zeros(dim), np.eye(dim))


def asymmetric():
    return Gaussian([-1.0, 2.0], [[1.5, -0.6], [-0.6, 0.5]])


def kl_divergence(network, target):
    """KL(p || q) of two Gaussians up to constants."""
    precision, gap = target.whiten.T @ target.whiten, network.b - target.loc
    return (
        0.5 * jnp.trace(precision @ network.factor @ network.factor.T)
        + 0.5 * gap @ precision @ gap
        - jnp.linalg.slogdet(network.factor)[1]
    )


def fisher_divergence(network, target, sigma=0.0):
    """`E_p |s_p - s_q|^2 / 2` of two Gaussians, p smoothed by N(0, sigma^2)."""
    q = target.whiten.T @ target.whiten
    covariance = network.factor @ network.factor.T + sigma**2 * jnp.eye(len(q))
    difference = q - jnp.linalg.inv(covariance)
    shift = q @ (network.b - target.loc)
    return 0.5 * jnp.trace(difference @ covariance @ difference) + 0.5 * shift @ shift


LINES = [(0.7, 0.6), (-1.3, 1.8), (0.2, 1.0)]


@pytest.mark.parametrize(("m", "t"), LINES)
def test_one_dimensional_gradients(double, m, t):
    network, z, q = line(m, t), nodes(1), standard()
    score = own_score(network)
    for objective, along_t in [
        (KL(), t - 1 / t),
        (ExactKL(), t - 1 / t),
        (Fisher(), t - 1 / t**3),
    ]:
        found = gradient(objective, network, q, score, z)
        np.testing.assert_allclose([found.t, found.m], [along_t, m], atol=1e-5, err_msg=str(objective))


@pytest.mark.parametrize("t", [0.4, 0.8])
def test_first_term_of_fisher_alone_goes_the_wrong_way(double, t):
    """The trap: the gradient of |s_p - s_q|^2 / 2 through x makes a narrow sampler narrower."""
    network, z, q = line(0.0, t), nodes(1), standard()
    score = own_score(network)

    def first_term(net):
        return jnp.mean(jax.vmap(lambda x: 0.5 * jnp.sum((score(x) - q.score(x)) ** 2))(jax.vmap(net)(z)))

    trap = eqx.filter_grad(first_term)(network).t
    np.testing.assert_allclose(trap, (t - 1 / t) * (1 - 1 / t**2), atol=1e-5)
    whole = gradient(Fisher(), network, q, score, z).t
    assert trap > 0 > whole


@pytest.mark.parametrize("weight", [0.2, 0.5, 3.0])
def test_fisher_stein_is_fisher_over_two_lambda(double, weight):
    network, q, z = plane(), asymmetric(), nodes(2)
    critic = eqx.Partial(_critic, own_score(network), q, jnp.asarray(weight))
    stein = gradient(FisherStein(weight), network, q, critic, z)
    fisher = eqx.filter_grad(fisher_divergence)(network, q)
    np.testing.assert_allclose(stein.b, fisher.b / (2 * weight), atol=1e-8)
    np.testing.assert_allclose(stein.factor, fisher.factor / (2 * weight), atol=1e-8)
    # The value at the optimal critic is the divergence itself, by the same factor.
    value = FisherStein(weight).surrogate(KEY, network, z, View(q, critic, jnp.asarray(0.0)))
    np.testing.assert_allclose(value, fisher_divergence(network, q) / (2 * weight), atol=1e-8)


@pytest.mark.parametrize(
    ("objective", "divergence"),
    [(KL(), kl_divergence), (ExactKL(), kl_divergence), (Fisher(), fisher_divergence)],
    ids=["kl", "exact_kl", "fisher"],
)
def test_correlated_gradients_are_those_of_the_divergence(double, objective, divergence):
    network, q = plane(), asymmetric()
    found = gradient(objective, network, q, own_score(network), nodes(2))
    truth = eqx.filter_grad(divergence)(network, q)
    np.testing.assert_allclose(found.b, truth.b, atol=1e-8)
    np.testing.assert_allclose(found.factor, truth.factor, atol=1e-8)
    # Planted: the score of a law 5 % too wide is seen.
    wide = Plane(network.b, 1.05 * network.factor)
    if not isinstance(objective, ExactKL):
        off = gradient(objective, network, q, own_score(wide), nodes(2))
        assert np.abs(off.factor - truth.factor).max() > 0.01


def test_exact_kl_value_is_the_divergence(double):
    network, q = plane(), asymmetric()
    latent = Normal(2)
    view = View(q, None, jnp.asarray(0.0), latent)
    found = ExactKL().surrogate(KEY, network, nodes(2), view)
    entropy = -jnp.mean(jax.vmap(latent.log_density)(nodes(2)))
    np.testing.assert_allclose(found + entropy, kl_divergence(network, q), atol=1e-10)


def test_exact_kl_has_no_noise_at_the_optimum(double):
    """The path gradient of every single draw vanishes once the sampler is exact; a wider one's does not."""
    network, q = plane(), asymmetric()
    exact = Plane(q.loc, jnp.linalg.inv(q.whiten))
    for z in jax.random.normal(KEY, (4, 1, 2)):
        found = gradient(ExactKL(), exact, q, None, z)
        np.testing.assert_allclose(found.factor, 0.0, atol=1e-8)
        assert np.abs(gradient(ExactKL(), network, q, None, z).factor).max() > 0.01


@pytest.mark.parametrize(("latent", "dim"), [(1, 2), (2, 1), (5, 2)])
def test_exact_kl_refuses_a_map_that_is_not_square(unhooked, latent, dim):
    network = eqx.Partial(lambda matrix, z: matrix @ z, jnp.ones((dim, latent)))
    view = View(standard(dim), None, jnp.asarray(0.0), Normal(latent))
    with pytest.raises(
        ValueError, match=rf"square map.*{latent} latent coordinates to {dim}.*latent_dim={dim}"
    ):
        ExactKL().surrogate(KEY, network, jnp.ones((3, latent)), view)


@pytest.mark.parametrize("sigma", [0.05, 0.7])
def test_projection_form_is_the_divergence_of_the_smoothed_law(double, monkeypatch, sigma):
    """With the noise on nodes too (every latent meets every noise) the expectation is exact."""
    network, q, points = plane(), asymmetric(), nodes(2)
    z, noise = jnp.repeat(points, len(points), 0), jnp.tile(points, (len(points), 1))
    monkeypatch.setattr(jax.random, "normal", lambda key, shape, dtype: noise.reshape(shape))
    form = Fisher("projection", sigma)
    found = gradient(form, network, q, own_score(network, sigma), z)
    truth = eqx.filter_grad(fisher_divergence)(network, q, sigma)
    np.testing.assert_allclose(found.b, truth.b, atol=1e-7)
    np.testing.assert_allclose(found.factor, truth.factor, atol=1e-7)
    # The trace form, given the smoothed law to begin with, agrees.
    wide = Plane(network.b, jnp.linalg.cholesky(network.factor @ network.factor.T + sigma**2 * jnp.eye(2)))
    trace = gradient(Fisher(), wide, q, own_score(wide), points)
    np.testing.assert_allclose(trace.b, found.b, atol=1e-7)
    # Planted: the score of the draws without the noise is not the one to use.
    off = gradient(form, network, q, own_score(network), z)
    assert np.abs(off.factor - truth.factor).max() > 0.1 * sigma**2


def test_projection_form_with_its_own_noise():
    """Twelve means, each beyond 5 standard errors with probability 6e-7: one new key in 140,000 fails."""
    network, q, sigma = plane(), asymmetric(), 0.5
    truth = eqx.filter_grad(fisher_divergence)(network, q, sigma)

    @jax.jit
    def repeat(keys, score_sigma):
        def one(key):
            key_z, key_noise = jax.random.split(key)
            z, score = jax.random.normal(key_z, (256, 2)), own_score(network, score_sigma)
            return gradient(Fisher("projection", sigma), network, q, score, z, key=key_noise)

        return jax.vmap(one)(keys)

    keys = jax.random.split(jax.random.key(3), 400)

    def worst(found):
        found, wanted = (np.concatenate([g.b.reshape(*g.b.shape[:-1], 2), g.factor.reshape(*g.b.shape[:-1], 4)], -1)
                         for g in (found, truth))  # fmt: skip
        return np.abs((found.mean(0) - wanted) / (found.std(0) / np.sqrt(len(found)))).max()

    assert worst(repeat(keys, sigma)) < 5
    # Planted: a score that forgets the noise.
    assert worst(repeat(keys, 0.0)) > 5


# Gaussians have linear scores, whose divergence is constant: of it they say nothing. A bent one does.


class Bent(eqx.Module):
    """`x = m + t sinh(z)`."""

    m: jax.Array
    t: jax.Array

    def __call__(self, z):
        return self.m + self.t * jnp.sinh(z)

    def log_density(self, x):
        """Of its law under standard normal latents, up to a constant."""
        z = jnp.arcsinh((x - self.m) / self.t)
        return jnp.sum(-0.5 * z**2 - jnp.log(self.t * jnp.cosh(z)))


class Smoothed(eqx.Module):
    """The law of `network(z) + sigma e`, `z` even chances of the given points."""

    network: Line
    z: jax.Array
    sigma: float

    def log_density(self, y):
        gaps = (y - jax.vmap(self.network)(self.z[:, None])[:, 0]) / self.sigma
        return jax.scipy.special.logsumexp(-0.5 * gaps**2)


def _own_slope(law, x):
    return jax.grad(law.log_density)(x)


def quartic():
    def log_density(x):
        return jnp.sum(-(x**4) / 40 + x**3 / 30 - x**2 / 4 + 0.3 * x)

    return pf.Target.from_log_density(log_density, dim=1)


# The trapezoidal rule is exact to all digits for functions as smooth as these.
FINE = np.linspace(-11, 11, 441)[:, None]
MASS = np.exp(-0.5 * FINE[:, 0] ** 2) / np.exp(-0.5 * FINE**2).sum()


def bent_fisher(law, target):
    x = jax.vmap(law)(FINE)
    gaps = jax.vmap(jax.grad(law.log_density))(x) - jax.vmap(target.score)(x)
    return 0.5 * MASS @ jnp.sum(gaps**2, axis=1)


def bent_kl(law, target):
    x = jax.vmap(law)(FINE)
    return MASS @ (jax.vmap(law.log_density)(x) - jax.vmap(target.log_density)(x))


@pytest.mark.parametrize("name", ["kl", "exact_kl", "fisher", "fisher_stein"])
def test_gradients_where_scores_are_not_linear(double, name):
    law, target, weight = Bent(jnp.asarray(0.4), jnp.asarray(0.8)), quartic(), 0.8
    score = eqx.Partial(_own_slope, law)
    if name == "fisher_stein":
        score = eqx.Partial(_critic, score, target, jnp.asarray(weight))
    objective = {"kl": KL(), "exact_kl": ExactKL(), "fisher": Fisher(), "fisher_stein": FisherStein(weight)}[
        name
    ]
    view = View(target, score, jnp.asarray(0.0), Normal(1))

    @eqx.filter_jit
    @eqx.filter_grad
    def found(network):
        # Point by point, so that each can be given its weight.
        return MASS @ jax.vmap(lambda z: objective.surrogate(KEY, network, z[None], view))(FINE)

    truth = eqx.filter_jit(eqx.filter_grad(bent_kl if "kl" in name else bent_fisher))(law, target)
    factor = 1 / (2 * weight) if name == "fisher_stein" else 1.0
    slopes = found(law)
    np.testing.assert_allclose([slopes.m, slopes.t], np.array([truth.m, truth.t]) * factor, rtol=1e-8)
    assert min(abs(truth.m), abs(truth.t)) > 0.01


def test_projection_form_where_scores_are_not_linear(double):
    z, sigma, target = jnp.asarray([-1.2, 0.3, 1.1]), 0.6, quartic()
    network = line(0.4, 0.8)

    def pairs(network):
        """Every point of the law with every noise, and their weights."""
        x = jax.vmap(network)(z[:, None])
        return x[:, None] + sigma * FINE[None], jnp.broadcast_to(MASS / 3, (3, len(MASS)))

    def divergence(network):
        y, mass = pairs(network)
        law = Smoothed(network, z, sigma)
        gaps = jax.vmap(jax.vmap(lambda y: jax.grad(law.log_density)(y) - target.score(y)))(y)
        return 0.5 * jnp.sum(mass[:, :, None] * gaps**2)

    score = eqx.Partial(_own_slope, Smoothed(network, z, sigma))
    view, form = View(target, score, jnp.asarray(0.0)), Fisher("projection", sigma)

    def surrogate(network):
        def one(point, noise):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(jax.random, "normal", lambda key, shape, dtype: noise.reshape(shape))
                return form.surrogate(KEY, network, point[None, None], view)

        values = jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))(z, jnp.asarray(FINE))
        return jnp.sum(pairs(network)[1] * values)

    found, truth = (eqx.filter_jit(eqx.filter_grad(fn))(network) for fn in (surrogate, divergence))
    np.testing.assert_allclose([found.m, found.t], [truth.m, truth.t], rtol=1e-8)
    assert min(abs(truth.m), abs(truth.t)) > 0.01


@pytest.mark.parametrize("progress", [0.0, 0.25, 1.0])
def test_combined_is_the_weighted_sum(double, progress):
    network, q = plane(), asymmetric()
    score, z = own_score(network), nodes(2)
    combined = Combined((KL(), Fisher()), (0.3, _fading))
    found = gradient(combined, network, q, score, z, progress=progress)
    kl, fisher = (gradient(part, network, q, score, z) for part in (KL(), Fisher()))
    np.testing.assert_allclose(found.b, 0.3 * kl.b + 2 * (1 - progress) * fisher.b, atol=1e-12)
    np.testing.assert_allclose(found.factor, 0.3 * kl.factor + 2 * (1 - progress) * fisher.factor, atol=1e-12)


def test_combined_nests_and_counts_its_weights():
    inner = Combined((KL(), KL()), (0.5, 0.5))
    network, q, z = line(0.3, 0.8), standard(), nodes(1).astype(jnp.float32)
    a = gradient(Combined((inner,), (2.0,)), network, q, own_score(network), z)
    b = gradient(KL(), network, q, own_score(network), z)
    np.testing.assert_allclose(a.t, 2 * b.t, rtol=1e-5)
    for parts, weights in [((KL(),), (1.0, 2.0)), ((), ())]:
        with pytest.raises(ValueError, match=r"`weights` must have one entry for each"):
            Combined(parts, weights)


def test_ksd_gradient_against_finite_differences(double):
    network, target = plane(), pf.targets.banana()
    z = jax.random.normal(KEY, (7, 2))
    view = View(target, None, jnp.asarray(0.0))
    flat, rebuild = jax.flatten_util.ravel_pytree(network)

    @jax.jit
    def value(flat):
        return KSD().surrogate(KEY, rebuild(flat), z, view)

    steps = 1e-6 * jnp.eye(flat.size)
    by_differences = [(value(flat + step) - value(flat - step)) / 2e-6 for step in steps]
    found = jax.grad(value)(flat)
    np.testing.assert_allclose(found, by_differences, rtol=1e-5, atol=1e-6)
    assert np.abs(found).min() > 1e-3  # every parameter matters here


def test_steingan_direction_against_a_double_loop(double):
    """The network is a table of particles, so that the gradient of each is seen by itself."""
    target, n = pf.targets.banana(), 9
    points = np.asarray(jax.random.normal(jax.random.key(5), (n, 2)) + jnp.asarray([0.5, -1.0]))
    squares = np.array([[np.sum((a - b) ** 2) for b in points] for a in points])
    square_bandwidth = np.median(squares) / (2 * np.log(n + 1))
    scores = [np.asarray(target.score(jnp.asarray(p))) for p in points]
    direction = np.zeros((n, 2))
    for i in range(n):
        total = 0.0
        for j in range(n):
            k = np.exp(-squares[i, j] / (2 * square_bandwidth))
            direction[i] += k * scores[j] + k * (points[i] - points[j]) / square_bandwidth
            total += k
        direction[i] /= total
    table = eqx.Partial(lambda p, z: z @ p, jnp.asarray(points))
    found = gradient(SteinGAN(), table, target, None, jnp.eye(n)).args[0]
    np.testing.assert_allclose(-n * found, direction, rtol=1e-9, atol=1e-9)


@eqx.filter_jit
def energy_pulls(network, other):
    """Gradients of `Forward` in the network's parameters, 2,000 times with fresh draws of both laws."""
    n, m = 8, 32

    def one(key):
        key_z, key_buffer, key_rows = jax.random.split(key, 3)
        buffer = jax.vmap(other)(jax.random.normal(key_buffer, (m, 2)))
        z = jax.random.normal(key_z, (n, 2))
        found = gradient(Forward(buffer, batch_size=m), network, None, None, z, key=key_rows)
        return jnp.append(found.b, found.factor)

    return jax.vmap(one)(jax.random.split(jax.random.key(8), 2_000))


def test_energy_distance_has_no_pull_when_the_laws_agree():
    """Six means, each beyond 5 standard errors with probability 6e-7: one new key in 280,000 fails.

    Batches are small, so that a draw's distance to itself, were it counted, would show.
    """

    def worst(pulls):
        return np.abs(pulls.mean(0) / (pulls.std(0) / np.sqrt(len(pulls)))).max()

    network = plane()
    assert worst(np.asarray(energy_pulls(network, network))) < 5
    # Planted: a law an eighth wider, which is what counting them would amount to.
    assert worst(np.asarray(energy_pulls(network, Plane(network.b, 1.125 * network.factor)))) > 5


def test_energy_distance_pulls_towards_the_buffer():
    network, shift = plane(), np.array([1.5, -0.7])
    pull = -np.asarray(energy_pulls(network, Plane(network.b + shift, network.factor))).mean(0)[:2]
    assert pull @ shift > 0.5 * np.linalg.norm(pull) * np.linalg.norm(shift)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Fisher("traces"), r"`form` must be one of.*Did you mean 'trace'\?"),
        (lambda: Fisher("projection", 0.0), r"`sigma` must be a finite number above 0; got 0.0"),
        (lambda: FisherStein(-1.0), r"`weight` must be a finite number above 0"),
        (lambda: Forward(jnp.zeros((3, 2)), 0), r"`batch_size` must be a positive integer; got 0"),
    ],
)
def test_bad_arguments_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
