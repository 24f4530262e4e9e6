"""Normalising constants, moments and definitions against closed forms, quadrature and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from pushforward import targets
from reproduce.targets import (
    GridLaw,
    StudentTMixture,
    double_well,
    many_well,
    phi4,
    rezende4,
    student_t,
)

PLANE = ["banana", "donut", "double_well", "gaussian", "mog2", "rosenbrock", "squiggle"]
PLANE += [f"rezende{k}" for k in (1, 2, 3, 4)]
SQUARE_ROOT_2PI = np.sqrt(2 * np.pi)


@pytest.mark.parametrize("name", PLANE)
def test_mass_and_moments_by_quadrature(name):
    # The trapezoidal rule converges at once for smooth densities that vanish at the edges.
    with jax.enable_x64(True):
        target = targets.get(name)
        low, high = np.array(target.window).T
        margin = 2 * (high - low)
        x, y = np.linspace(low - margin, high + margin, 801).T
        grid = jnp.stack(jnp.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
        values = np.asarray(jax.jit(jax.vmap(target.log_density))(grid))
        grid, log_z = np.asarray(grid), np.asarray(target.log_z)
        mean, covariance = np.asarray(target.mean), np.asarray(target.covariance)
    weights = np.exp(values - log_z) * (x[1] - x[0]) * (y[1] - y[0])
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(weights @ grid, mean, atol=1e-5)
    second = (weights[:, None] * grid).T @ grid
    np.testing.assert_allclose(second, covariance + np.outer(mean, mean), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("gaussian", 2 * np.pi / np.sqrt(2.75)),
        ("rosenbrock", 2 * np.pi * np.sqrt(0.75)),
        ("squiggle", 2 * np.pi * np.sqrt(0.9375)),
        ("donut", 19.687),
        ("banana", 2 * np.pi * 10),
        ("double_well", 11784.50927 * SQUARE_ROOT_2PI),  # Midgley et al. (2023), their code
    ],
)
def test_published_constants(name, constant):
    assert float(np.exp(targets.get(name).log_z)) == pytest.approx(constant, rel=3e-5)


def test_paper_moments():
    for name, mean, covariance in [
        ("gaussian", [-1, 1], [[0.3636, 0.1818], [0.1818, 1.0909]]),
        ("mog2", [0, 0], [[4.5, -4], [-4, 4.5]]),
        ("rosenbrock", [0, -3], [[1, 0.5], [0.5, 3]]),
        ("donut", [0, 0], [[3.5, 0], [0, 3.5]]),
        ("squiggle", [1, 0.983], [[2, 0.28], [0.28, 1.007]]),
        ("funnel", [1, 4], [[np.exp(8.5), 0], [0, 9]]),
    ]:
        target = targets.get(name)
        np.testing.assert_allclose(target.mean, mean, atol=1e-3)
        np.testing.assert_allclose(target.covariance, covariance, rtol=1e-3, atol=1e-3)


def log_probabilities(name, x):
    """The normalised log density by SciPy."""
    target = targets.get(name)
    if name == "student_t":
        return scipy.stats.t(5).logpdf(x).sum(1)
    if name in {"funnel", "published_funnel"}:
        wide, neck = x.T
        return scipy.stats.norm(4, 3).logpdf(neck) + scipy.stats.norm(1, np.exp(neck / 2)).logpdf(wide)
    if name == "funnel_nd":
        others = scipy.stats.norm(0, np.exp(x[:, :1] / 2)).logpdf(x[:, 1:]).sum(1)
        return scipy.stats.norm(0, 3).logpdf(x[:, 0]) + others
    if name == "correlated_gaussian":
        return scipy.stats.multivariate_normal(target.mean, target.covariance).logpdf(x)
    means = np.asarray(target.means)
    law = scipy.stats.t(2) if name == "student_t_mixture" else scipy.stats.norm()
    width = np.sqrt(0.5) if name == "mog2" else 1.0
    parts = law.logpdf((x[:, None] - means) / width).sum(-1) - x.shape[1] * np.log(width)
    return np.logaddexp.reduce(parts, axis=1) - np.log(len(means))


@pytest.mark.parametrize("name", sorted(set(targets.TARGETS) - {*PLANE, "many_well", "phi4", "dw4", "lj13"}))
def test_densities_against_scipy(name, draws, evaluate):
    x = draws(name)[:1000]
    values, _ = evaluate(name, x)
    ours = values - np.asarray(targets.get(name).log_z)
    np.testing.assert_allclose(ours, log_probabilities(name, x.astype(float)), rtol=1e-4, atol=1e-3)


def test_paper_formulas():
    x = jnp.array([0.7, -1.3])
    mog2 = np.log(np.exp(-(2.7**2 + 3.3**2)) + np.exp(-(1.3**2 + 0.7**2))) - np.log(2 * np.pi)
    assert float(targets.mog2().log_density(x)) == pytest.approx(mog2, rel=1e-5)
    ring = -((np.hypot(0.7, 1.3) - 2.5) ** 2) / 0.5
    assert float(targets.get("donut").log_density(x)) == pytest.approx(ring, rel=1e-5)
    u = np.array([-0.7, 1.3 - (0.7**2 + 1)]) - [0, 1]
    bent = -0.5 * u @ np.linalg.inv([[1, 0.5], [0.5, 1]]) @ u
    assert float(targets.rosenbrock().log_density(x)) == pytest.approx(bent, rel=1e-5)
    wave, fork = np.sin(np.pi * 0.35), 3 / (1 + np.exp(0.3 / 0.3))
    strands = [-0.5 * ((-1.3 - wave) / 0.4) ** 2, -0.5 * ((-1.3 - wave + fork) / 0.35) ** 2]
    wall = -((0.7 / 4) ** 4)
    fork = rezende4().log_density(x)
    assert float(fork) == pytest.approx(np.logaddexp(*strands) + wall, rel=1e-5)


def test_wells_have_unequal_weights(draws):
    def density(d):
        return np.exp(0.5 * d + 6 * d**2 - d**4 - 9)

    right, whole = (scipy.integrate.quad(density, low, 4)[0] for low in (0, -4))
    share = (draws("double_well")[:, 0] > 0).mean()
    assert 0.8 < right / whole < 0.9
    # Five standard errors: a new key fails with probability 6e-7.
    assert abs(share - right / whole) < 5 * np.sqrt(0.25 / len(draws("double_well")))
    pair, many = double_well(), many_well(8)
    np.testing.assert_allclose(many.log_z, 4 * pair.log_z, rtol=1e-6)
    x = jnp.arange(8.0) / 4
    pairs = jax.vmap(pair.log_density)(x.reshape(4, 2)).sum()
    np.testing.assert_allclose(many.log_density(x), pairs, rtol=1e-5)


def test_grid_law_matches_the_radius_of_the_donut():
    # Facts, section 1.4: the distribution function of r exp(-(r - R)^2 / 2t^2) in closed form.
    def closed(r, ring=2.5, t=0.5):
        law = scipy.stats.norm
        part = ring * (law.cdf((r - ring) / t) - law.cdf(-ring / t))
        part -= t * (law.pdf((r - ring) / t) - law.pdf(ring / t))
        return part / (ring * law.cdf(ring / t) + t * law.pdf(ring / t))

    law = targets.get("donut").law
    np.testing.assert_allclose(law.cdf, closed(np.asarray(law.nodes, float)), atol=3e-7)
    r = np.asarray(law.sample(jax.random.key(1), 400_000), float)
    assert scipy.stats.kstest(closed(r), "uniform", method="asymp").pvalue > 1e-6
    assert scipy.stats.kstest(closed(1.005 * r), "uniform", method="asymp").pvalue < 1e-6


def test_grid_law_follows_a_steep_line_within_its_cells():
    # Two cells only, so that all the shape is within them: density 2x on [0, 1], F = x^2.
    x = GridLaw(lambda x: x, 0.0, 1.0, num_cells=2).sample(jax.random.key(0), 20_000)
    assert (x > 0).all()
    assert scipy.stats.kstest(np.asarray(x, float) ** 2, "uniform", method="asymp").pvalue > 1e-6


def test_phi4_by_loops():
    target = phi4(side=3, kappa=0.2, lam=0.05)
    field = np.random.default_rng(0).normal(size=(3, 3))
    action = 0.0
    for i in range(3):
        for j in range(3):
            neighbours = field[(i + 1) % 3, j] + field[i, (j + 1) % 3]
            action += 0.9 * field[i, j] ** 2 + 0.05 * field[i, j] ** 4
            action -= 0.4 * field[i, j] * neighbours
    assert float(target.log_density(jnp.asarray(field.ravel()))) == pytest.approx(-action, rel=1e-5)


@pytest.mark.parametrize("df", [0.5, 1.0, 2.0, 2.5])
def test_moments_that_do_not_exist_are_none(df):
    mixture = StudentTMixture(df, [1, 3], [[0.0, 1.0], [4.0, 1.0]], scale=2.0)
    product = student_t(df, dim=2)
    for target in [mixture, product]:
        assert (target.mean is None) == (df <= 1)
        assert (target.covariance is None) == (df <= 2)
    if df > 2:
        np.testing.assert_allclose(product.covariance, np.diag([5.0, 5.0]), rtol=1e-6)
        np.testing.assert_allclose(mixture.mean, [3.0, 1.0])
        np.testing.assert_allclose(mixture.covariance, np.diag([20.0 + 3.0, 20.0]), rtol=1e-6)


def test_correlated_gaussian_has_its_condition_number():
    target = targets.correlated_gaussian(jax.random.key(3), 6, 1e4)
    spectrum = np.linalg.eigvalsh(np.asarray(target.covariance, float))
    assert spectrum[-1] == pytest.approx(1, rel=1e-5)
    assert spectrum[-1] / spectrum[0] == pytest.approx(1e4, rel=1e-2)
    assert np.abs(target.covariance - np.diag(np.diag(target.covariance))).max() > 0.1


def test_other_dimensions():
    assert targets.gaussian(5).dim == targets.gmm40(5).dim == targets.funnel_nd(5).dim == 5
    assert student_t(3.0, dim=4).dim == 4
    np.testing.assert_array_equal(targets.gaussian(3).covariance, np.eye(3))
