"""The noise head against a linear map, whose density, score, ELBO and evidence are closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from pushforward.frame import Frame
from pushforward.latents import Normal, NormalMixture, Uniform
from pushforward.networks import MLP, mlp
from pushforward.sampler import Sampler, load
from pushforward.targets import Gaussian, Mixture
from reproduce.noise import (
    Evidence,
    NoiseHead,
    add_noise,
    evidence,
    log_density,
    noise_head,
)

SIGMA = 0.3
SLOPE = np.array([[1.0, 0.5, -0.3], [-0.2, 0.8, 0.6]])
SHIFT = np.array([0.5, -1.0])
MARGINAL = SLOPE @ SLOPE.T + SIGMA**2 * np.eye(2)


def linear(slope, shift):
    """The map `slope z + shift` as a network."""
    return MLP((jnp.asarray(slope, float),), (jnp.asarray(shift, float),), "tanh", skip=False)


FRAME = Frame(
    centre=jnp.array([2.0, -3.0]), scale=jnp.array([5.0, 0.1]), bend=jnp.zeros(2), shift=jnp.zeros(2),
    matrix=jnp.array([[1.0, 0.0], [0.4, 0.8]]),
)  # fmt: skip
MOVE = np.diag([5.0, 0.1]) @ np.array([[1.0, 0.0], [0.4, 0.8]])


@pytest.fixture(scope="module")
def sampler():
    """Three latents to two coordinates, so that no Jacobian could tell the density."""
    plain = Sampler(Normal(3), linear(SLOPE, SHIFT), FRAME)
    return add_noise(jax.random.key(0), plain, SIGMA)


def law():
    """The law of the sampler's draws."""
    return scipy.stats.multivariate_normal(np.array([2.0, -3.0]) + MOVE @ SHIFT, MOVE @ MARGINAL @ MOVE.T)


def test_draws_have_the_law_of_a_linear_map_plus_noise(sampler):
    x = np.asarray(sampler.sample(jax.random.key(1), 20_000), np.float64)
    white = (x - law().mean) @ np.linalg.inv(np.linalg.cholesky(law().cov)).T
    # Four p-values below 1e-6 each.
    for column in white.T:
        assert scipy.stats.kstest(column, "norm").pvalue > 1e-6
        assert scipy.stats.kstest(1.1 * column, "norm").pvalue < 1e-6


def test_conditional_density_and_score(sampler):
    head, u, z = sampler.network, jnp.array([0.3, 0.1]), jnp.array([0.2, -1.0, 0.7])
    centre = SLOPE @ np.asarray(z) + SHIFT
    expected = scipy.stats.norm(centre, SIGMA).logpdf(np.asarray(u)).sum()
    assert float(head.log_conditional(u, z)) == pytest.approx(expected, rel=1e-5)
    by_autodiff = jax.grad(head.log_conditional)(u, z)
    np.testing.assert_allclose(head.conditional_score(u, z), by_autodiff, rtol=1e-4)
    np.testing.assert_allclose(head.conditional_score(u, z), (centre - np.asarray(u)) / SIGMA**2, rtol=1e-4)


def test_log_density_at_any_point(sampler):
    x = np.concatenate(
        [np.asarray(sampler.sample(jax.random.key(2), 30)), law().mean[None] + MOVE @ [4.0, 4.0]]
    )
    values, errors = log_density(jax.random.key(3), sampler, jnp.asarray(x, float))
    truth = law().logpdf(x)
    # A linear map's posterior is normal: the guide is exact but for its widening, and errors are small.
    assert np.asarray(errors).max() < 0.1
    assert np.all(np.abs(np.asarray(values) - truth) < 5 * np.asarray(errors) + 1e-3)
    # Planted error: a density without the frame's determinant is off by nats.
    assert np.abs(np.asarray(values) + np.log(np.linalg.det(MOVE)) - truth).min() > 0.5


def test_log_density_of_a_map_that_folds():
    # Two latents to one coordinate through a net that is far from one-to-one: the density by quadrature.
    net = mlp(jax.random.key(3), 2, 1, width=8, depth=1, activation="tanh")
    noisy = add_noise(jax.random.key(4), Sampler(Normal(2), net, Frame.identity(1)), 0.2)
    side = np.linspace(-6, 6, 301)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2).astype(np.float32)
    mass = (
        np.exp(-0.5 * np.sum(grid.astype(np.float64) ** 2, axis=1)) / (2 * np.pi) * (side[1] - side[0]) ** 2
    )
    centres = np.asarray(jax.vmap(net)(grid), np.float64)[:, 0]
    x = np.asarray(noisy.sample(jax.random.key(5), 12), np.float64)[:, 0]
    truth = np.log([mass @ scipy.stats.norm.pdf(point, centres, 0.2) for point in x])
    values, errors = map(
        np.asarray, log_density(jax.random.key(6), noisy, jnp.asarray(x[:, None], float), num_latents=512)
    )
    # Twelve at five standard errors; the errors themselves are estimates.
    assert np.all(np.abs(values - truth) < 5 * errors + 2e-3)
    assert errors.max() < 0.3
    assert np.abs(values - truth).max() < 0.3


def test_elbo_and_evidence_against_closed_forms(sampler):
    cov = 1.3 * law().cov
    target = Gaussian(law().mean, cov)
    log_z = float(target.log_z)
    divergence = 0.5 * (2 / 1.3 - 2 + 2 * np.log(1.3))
    # Two proposed latents make every weight noisy; their mean is right all the same, because the latent that
    # a draw was made from is in the sum.
    found = evidence(jax.random.key(4), sampler, target, num_draws=4096, num_latents=2)
    elbo, error = found.elbo
    # Five standard errors: one new key in a million. The bound is below the ELBO itself by its slack.
    assert log_z - divergence - 0.05 < elbo < log_z - divergence + 5 * error
    assert elbo < found.log_z
    assert abs(found.log_z - log_z) < 5 * found.log_z_error
    assert found.interval[0] < log_z + 2 * found.log_z_error
    assert found.log_z_error < 0.02
    # 1 / E w^2 of N(0, 1) as a proposal for N(0, v) is sqrt(2 v - v^2) in each of two coordinates.
    share = 2 * 1.3 - 1.3**2
    assert found.efficiency == pytest.approx(share, abs=0.1)
    assert found.k < 0.7
    # Planted error: against a target that is off in its normalisation the interval does not hold it.
    assert not found.interval[0] < log_z + 0.1 < found.interval[1]


def two_modes(weights, widths=(1.0, 0.5)):
    latent = NormalMixture(
        jnp.asarray(weights, float),
        jnp.array([[-4.0, 0.0], [4.0, 1.0]]),
        jnp.asarray(widths, float)[:, None, None] * jnp.eye(2),
    )
    return Sampler(latent, linear(np.eye(2), np.zeros(2)), Frame.identity(2))


def test_resampling_puts_mode_weights_right():
    noisy = add_noise(jax.random.key(0), two_modes([0.5, 0.5]), 0.1)
    covs = [1.01 * np.eye(2), (0.25 + 0.01) * np.eye(2)]
    target = Mixture([0.2, 0.8], [[-4.0, 0.0], [4.0, 1.0]], covs)
    found = evidence(jax.random.key(6), noisy, target, num_draws=4096, num_latents=2)
    assert np.mean(found.draws[:, 0] < 0) == pytest.approx(0.5, abs=0.05)
    repaired = found.resample(jax.random.key(7), 2000)
    # 4096 draws at this efficiency leave a standard error of 0.01.
    assert np.mean(repaired[:, 0] < 0) == pytest.approx(0.2, abs=0.04)
    assert abs(found.log_z) < 5 * found.log_z_error + 1e-3


def test_modes_that_share_one_shape_are_weighed_as_others_are():
    one, each = (add_noise(jax.random.key(0), two_modes([0.5, 0.5], w), 0.1) for w in ([0.7], [0.7, 0.7]))
    cov = (0.49 + 0.01) * np.eye(2)
    target = Mixture([0.2, 0.8], [[-4.0, 0.0], [4.0, 1.0]], [cov, cov])
    found, wanted = (
        evidence(jax.random.key(6), s, target, num_draws=512, num_latents=2) for s in (one, each)
    )
    assert found.log_z == pytest.approx(wanted.log_z, abs=1e-3)
    assert abs(found.log_z) < 5 * found.log_z_error + 1e-3


def test_weights_that_cannot_be_believed_are_refused():
    heavy = -3.0 * np.log(np.random.default_rng(0).uniform(size=2000))
    bad = Evidence(np.zeros((2000, 1)), heavy, 1)
    assert bad.k > 0.7
    with pytest.raises(ValueError, match="cannot be believed"):
        bad.resample(jax.random.key(0), 10)
    lost = Evidence(np.zeros((100, 1)), np.where(np.arange(100) < 5, -np.inf, 0.0), 1)
    assert lost.elbo == (-np.inf, np.inf)
    assert lost.log_z == pytest.approx(np.log(0.95))


def test_a_bare_map_and_other_latents_are_refused(sampler):
    bare = two_modes([0.5, 0.5])
    with pytest.raises(TypeError, match="add_noise"):
        evidence(jax.random.key(0), bare, Gaussian([0.0, 0.0], np.eye(2)))
    with pytest.raises(ValueError, match="already"):
        add_noise(jax.random.key(0), sampler)
    with pytest.raises(TypeError, match="Uniform"):
        add_noise(jax.random.key(0), Sampler(Uniform(2), linear(np.eye(2), [0, 0]), Frame.identity(2)))
    with pytest.raises(ValueError, match="sigma"):
        noise_head(jax.random.key(0), linear(np.eye(2), [0, 0]), -1.0)
    with pytest.raises(ValueError, match="sizes"):
        NoiseHead(linear(np.eye(2), [0, 0]), linear(SLOPE, SHIFT))


def test_a_noisy_sampler_is_saved_and_loaded(sampler, tmp_path):
    path = tmp_path / "noisy.pf"
    sampler.save(path)
    again = load(path)
    assert isinstance(again.network, NoiseHead)
    key = jax.random.key(8)
    np.testing.assert_array_equal(again.sample(key, 100), sampler.sample(key, 100))
