"""Exact samplers against the moments, the marginals and the scores of their own densities.

Keys are fixed, so a test that passes goes on passing; the stated rates are what a new key risks.
"""

import jax
import numpy as np
import pytest
import scipy.stats

from pushforward import targets
from pushforward.base import ExactTarget

EXACT = sorted(set(targets.TARGETS) - {"phi4", "dw4", "lj13"})
# Their sample moments, or the errors of these, do not settle: tested through their marginal laws.
HEAVY = {"funnel", "published_funnel", "funnel_nd", "student_t", "student_t_mixture"}


def moment_z_scores(draws, target):
    """How many standard errors the sample mean and covariance are from the target's."""
    centred = draws - np.asarray(target.mean, np.float64)
    truth, n = np.asarray(target.covariance, np.float64), len(draws)
    products, squares = centred.T @ centred / n, (centred**2).T @ centred**2 / n
    means = centred.mean(0) / np.sqrt(np.diag(truth) / n)
    covariances = (products - truth) / np.sqrt((squares - products**2) / n)
    return np.abs(np.append(means, covariances))


@pytest.mark.parametrize("name", sorted(set(EXACT) - HEAVY))
def test_moments(name, draws):
    # About 730 scores in all, each above 5 with probability 6e-7: one new key in 2,000 fails.
    target = targets.get(name)
    x = draws(name)
    assert moment_z_scores(x, target).max() < 5
    # Planted errors: a tenth of a standard deviation, and all 10 % too wide.
    spread = np.sqrt(np.diag(target.covariance))
    assert moment_z_scores(x + 0.1 * spread, target).max() > 5
    assert moment_z_scores(1.1 * x, target).max() > 5


def stein_u_statistic(x, scores):
    """The U-statistic of the squared IMQ Stein discrepancy, in its own standard deviations.

    `k = (1 + r^2)^(-1/2)`. Under the null the U-statistic has mean 0 and variance
    `2 E h^2 / n(n-1)`, and its law is a weighted sum of centred chi-squares, at worst a single one:
    ten deviations are then exceeded with probability 1e-4, and far less often by mixed weights.
    """
    x, scores = x.astype(np.float64), scores.astype(np.float64)
    squares = np.sum(x**2, axis=1)
    distance = np.maximum(squares[:, None] + squares - 2 * x @ x.T, 0)
    kernel, crossed = 1 / np.sqrt(1 + distance), scores @ x.T
    own = np.diag(crossed)
    slopes = own[:, None] - crossed + own - crossed.T + x.shape[1]
    h = kernel * (scores @ scores.T + kernel**2 * (slopes - 3 * distance * kernel**2))
    h = h[~np.eye(len(x), dtype=bool)]
    return h.mean() / np.sqrt(2 * np.mean(h**2) / h.size)


@pytest.mark.parametrize("name", sorted(set(EXACT) - {"published_funnel"}))
def test_draws_fit_their_score(name, draws, evaluate):
    x = draws(name)[:1000]
    assert stein_u_statistic(x, evaluate(name, x)[1]) < 10
    if name in {"funnel", "funnel_nd"}:
        return  # A few points at the narrow end rule the statistic: it sees nothing here.
    # Planted error: a shift of 0.3 robust standard deviations, along an axis of asymmetry or not.
    low, high = np.quantile(x, [0.16, 0.84], axis=0)
    shifted = x + 0.15 * (high - low)
    assert stein_u_statistic(shifted, evaluate(name, shifted)[1]) > 10


def test_draws_do_not_fit_the_published_score(draws, evaluate):
    thirds = np.split(draws("published_funnel")[:3000], 3)
    scores = np.concatenate([evaluate("published_funnel", x)[1] for x in thirds])
    assert stein_u_statistic(np.concatenate(thirds), scores) > 10


def uniform_p_value(values):
    """The Kolmogorov-Smirnov p-value of numbers that should be uniform."""
    return scipy.stats.kstest(values, "uniform", method="asymp").pvalue


@pytest.mark.parametrize("name", ["funnel", "published_funnel", "funnel_nd"])
def test_funnel_conditionals(name, draws):
    x, normal = draws(name).astype(np.float64), scipy.stats.norm.cdf
    neck, m, centre = (0, 0.0, 0.0) if name == "funnel_nd" else (1, 4.0, 1.0)
    y, others = x[:, neck], np.delete(x, neck, axis=1)
    white = (others - centre) * np.exp(-y / 2)[:, None]
    # Each fails a new key with probability 1e-6.
    assert uniform_p_value(normal((y - m) / 3)) > 1e-6
    assert uniform_p_value(normal(white).ravel()) > 1e-6
    assert abs(np.corrcoef(y, white[:, 0] ** 2)[0, 1]) * np.sqrt(len(y)) < 5
    # Planted errors: spreads 10 % too wide, a variance taken for a deviation.
    assert uniform_p_value(normal(1.1 * (y - m) / 3)) < 1e-6
    assert uniform_p_value(normal(1.1 * white).ravel()) < 1e-6
    assert uniform_p_value(normal(others * np.exp(-y)[:, None]).ravel()) < 1e-6


def test_student_t_marginal(draws):
    x, law = draws("student_t")[:, 0], scipy.stats.t(5)
    assert uniform_p_value(law.cdf(x)) > 1e-6
    assert uniform_p_value(law.cdf(1.1 * x)) < 1e-6


@pytest.mark.parametrize("axis", [0, 1])
def test_student_t_mixture_marginals(axis, draws):
    means = np.asarray(targets.get("student_t_mixture").means)[:, axis]
    x = draws("student_t_mixture")[:, axis]
    assert uniform_p_value(scipy.stats.t(2, loc=means).cdf(x[:, None]).mean(1)) > 1e-6
    assert uniform_p_value(scipy.stats.t(2, loc=means).cdf(1.1 * x[:, None]).mean(1)) < 1e-6


@pytest.mark.parametrize("name", ["mog2", "gmm40"])
def test_mixture_shares(name, draws):
    target = targets.get(name)
    means, weights = np.asarray(target.means), np.asarray(target.weights)
    nearest = np.linalg.norm(draws(name)[:, None] - means, axis=-1).argmin(1)
    counts = np.bincount(nearest, minlength=len(weights))
    if name == "gmm40":
        # Some of the forty overlap, so that the nearest mean is not always the true one: a
        # quarter either way is what an exact sampler shows.
        assert (abs(counts / len(nearest) / weights - 1) < 0.25).all()
    else:
        assert scipy.stats.chisquare(counts, weights * len(nearest)).pvalue > 1e-6
    assert (counts > 0).all()


def bin_probabilities(target, num_bins, refinement=16):
    """The mass of each cell of a grid over the window, by the midpoint rule on a finer grid."""
    edges = [np.linspace(low, high, num_bins + 1) for low, high in target.window]
    fine = [
        low + (np.arange(num_bins * refinement) + 0.5) * (high - low) / (num_bins * refinement)
        for low, high in target.window
    ]
    grid = np.stack(np.meshgrid(*fine, indexing="ij"), axis=-1).astype(np.float32)
    density = np.exp(jax.jit(jax.vmap(jax.vmap(target.log_density)))(grid) - target.log_z)
    cell = np.prod([f[1] - f[0] for f in fine])
    blocks = density.reshape(num_bins, refinement, num_bins, refinement)
    return edges, np.asarray(blocks.sum((1, 3)), np.float64) * cell


def chi_squared_p_value(draws, edges, probabilities):
    counts, _, _ = np.histogram2d(draws[:, 0], draws[:, 1], bins=edges)
    # Thin cells, and all outside the window, make one cell.
    thick = probabilities * len(draws) > 10
    observed = np.append(counts[thick], len(draws) - counts[thick].sum())
    expected = np.append(probabilities[thick], 1 - probabilities[thick].sum()) * len(draws)
    return scipy.stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize(
    "name", ["donut", "double_well", "rezende1", "rezende2", "rezende3", "rezende4", "squiggle"]
)
def test_histogram(name, draws):
    target = targets.get(name)
    assert isinstance(target, ExactTarget)
    edges, probabilities = bin_probabilities(target, num_bins=24)
    assert chi_squared_p_value(draws(name), edges, probabilities) > 1e-6
    assert chi_squared_p_value(1.03 * draws(name), edges, probabilities) < 1e-6
