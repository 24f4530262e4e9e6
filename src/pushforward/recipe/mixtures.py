"""Mixtures of normals by expectation-maximisation: the latent law of the default, and a rival."""

import numpy as np
from jaxtyping import Float

from pushforward.host import component_logs, normal_logs, on_device
from pushforward.latents import IndependentMixtures, NormalMixture
from pushforward.recipe.table import Law
from pushforward.weights import log_sum


def _spread_out(rng: np.random.Generator, x: np.ndarray, k: int) -> np.ndarray:
    """Choose `k` rows far from each other (k-means++)."""
    centres = [x[rng.integers(len(x))]]
    squared = np.full(len(x), np.inf)
    for _ in range(k - 1):
        squared = np.minimum(squared, ((x - centres[-1]) ** 2).sum(1))
        p = squared / squared.sum() if squared.sum() > 0 else None
        centres.append(x[rng.choice(len(x), p=p)])
    return np.stack(centres)


def shares_of(logs: np.ndarray) -> np.ndarray:
    """Return each component's share of every row."""
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def fit_mixture(
    rng: np.random.Generator,
    x: Float[np.ndarray, "n dim"],
    num_components: int,
    *,
    law: Law | None = None,
    centres: Float[np.ndarray, "k dim"] | None = None,
    shared: float | None = None,
) -> NormalMixture:
    """Fit a full-covariance mixture to the rows of `x`, from `centres` or from rows far from each other.

    The larger `shared`, the more alike are the components' shapes.
    """
    law = law or Law()
    dim, k = x.shape[1], num_components
    # As if each component had seen so many more rows, with the shape of all.
    borrowed = (law.alike[1] if shared is None else shared) * dim
    # No component can fall onto a point.
    ridge = law.ridge * np.diag(np.var(x, axis=0) + 1e-12)
    means = _spread_out(rng, x, k) if centres is None else centres
    factors = np.tile(np.diag(k ** (-1.0 / dim) * np.std(x, axis=0) + 1e-6), (k, 1, 1))
    weights = np.full(k, 1.0 / k)
    before = -np.inf
    for _ in range(law.steps):
        logs = normal_logs(x, weights, means, factors)
        shares, value = shares_of(logs), float(np.mean(log_sum(logs)))
        if value < before + law.settled:
            break
        before = value
        # A component that lost all its points keeps a crumb, so that nothing divides by zero.
        mass = shares.sum(0) + 1e-3
        weights, means = mass / mass.sum(), (shares.T @ x) / mass[:, None]
        covariances = _covariances(shares, x, means, mass) + ridge
        own = (mass / (mass + borrowed))[:, None, None]
        pooled = np.tensordot(weights, covariances, 1)
        factors = np.linalg.cholesky(own * covariances + (1.0 - own) * pooled)
    return NormalMixture(on_device(weights), on_device(means), on_device(factors))


def _covariances(shares: np.ndarray, x: np.ndarray, means: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the covariance of every component, of rows that belong to it by shares."""
    columns = np.ascontiguousarray(x.T)
    moments = np.stack([(each * columns) @ x for each in np.ascontiguousarray(shares.T)])
    return moments / mass[:, None, None] - means[:, :, None] * means[:, None, :]


def fit_independent(x: Float[np.ndarray, "n dim"], law: Law) -> IndependentMixtures:
    """Fit a mixture on the line to every column of `x`, from components at its quantiles."""
    k = law.few_components
    ridge = law.ridge * np.var(x, axis=0)[:, None] + 1e-12
    means = np.quantile(x, (np.arange(k) + 0.5) / k, axis=0).T
    gaps = np.diff(means, axis=1)
    near = np.minimum(np.c_[gaps, gaps[:, -1:]], np.c_[gaps[:, :1], gaps])
    weights, scales = np.full(means.shape, 1.0 / k), near + np.sqrt(ridge)
    for j, column in enumerate(x.T):
        for _ in range(law.line_steps):
            away = (column[:, None] - means[j]) / scales[j]
            shares = shares_of(np.log(weights[j] / scales[j]) - 0.5 * away**2)
            mass = shares.sum(0) + 1e-3
            means[j], second = column @ shares / mass, column**2 @ shares / mass
            weights[j] = mass / mass.sum()
            scales[j] = np.sqrt(np.maximum(second - means[j] ** 2, 0.0) + ridge[j])
    return IndependentMixtures(on_device(weights), on_device(means), on_device(scales))


def reweighed(mixture: NormalMixture, x: Float[np.ndarray, "n dim"], num_steps: int) -> NormalMixture:
    """Estimate the weights again on more rows than the shapes were fitted on."""
    weights = np.asarray(mixture.weights, np.float64)
    logs = component_logs(mixture, x) - np.log(weights)
    for _ in range(num_steps):
        weights = shares_of(logs + np.log(weights)).mean(0)
    return NormalMixture(on_device(weights), mixture.means, mixture.choleskys)
