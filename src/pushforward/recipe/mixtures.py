"""Mixtures of normals by expectation-maximisation: the latent law of the default, and a rival."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Key

from pushforward.latents import IndependentMixtures, Latent, NormalMixture
from pushforward.recipe.table import Law


def _spread_out(key: Key[Array, ""], x: np.ndarray, k: int) -> np.ndarray:
    """Choose `k` rows far from each other (k-means++)."""
    rng = np.random.default_rng(int(jax.random.bits(key, dtype=jnp.uint32)))
    centres = [x[rng.integers(len(x))]]
    squared = np.full(len(x), np.inf)
    for _ in range(k - 1):
        squared = np.minimum(squared, ((x - centres[-1]) ** 2).sum(1))
        p = squared / squared.sum() if squared.sum() > 0 else None
        centres.append(x[rng.choice(len(x), p=p)])
    return np.stack(centres)


def _component_logs(mixture: NormalMixture, x: Float[Array, "n dim"]) -> Float[Array, "n k"]:
    return jax.vmap(mixture.component_log_densities)(x)


@eqx.filter_jit
def _em(
    x: Float[Array, "n dim"], mixture: NormalMixture, num_steps: int, shared: Float[Array, ""], law: Law
) -> NormalMixture:
    # No component can fall onto a point.
    ridge = law.ridge * jnp.diag(jnp.var(x, axis=0) + 1e-12)

    def body(_, mixture):
        responsibility = jax.nn.softmax(_component_logs(mixture, x), axis=1)
        # A component that lost all its points keeps a crumb, so that nothing divides by zero.
        mass = responsibility.sum(0) + 1e-3
        means = (responsibility.T @ x) / mass[:, None]

        def covariance(r, mean, m):
            y = x - mean
            return (r[:, None] * y).T @ y / m + ridge

        covariances = jax.vmap(covariance)(responsibility.T, means, mass)
        # As if each component had seen `shared` more rows a coordinate, with the shape of all.
        pooled = jnp.tensordot(mass / mass.sum(), covariances, 1)
        share = (mass / (mass + shared * x.shape[1]))[:, None, None]
        covariances = share * covariances + (1.0 - share) * pooled
        return NormalMixture(mass / mass.sum(), means, jnp.linalg.cholesky(covariances))

    return jax.lax.fori_loop(0, num_steps, body, mixture)


@eqx.filter_jit
def mean_log_density(mixture: Latent, x: Float[Array, "n dim"]) -> Float[Array, ""]:
    """Return the mean log density of the mixture at the rows of `x`."""
    return jnp.mean(jax.lax.map(mixture.log_density, x, batch_size=1024))


@eqx.filter_jit
def reweigh(mixture: NormalMixture, x: Float[Array, "n dim"]) -> NormalMixture:
    """Estimate the weights again on more rows than the shapes were fitted on."""

    def body(_, weights):
        current = NormalMixture(weights, mixture.means, mixture.choleskys)
        shares = jax.lax.map(
            lambda point: jax.nn.softmax(current.component_log_densities(point)), x, batch_size=4096
        )
        return jnp.mean(shares, axis=0)

    weights = jax.lax.fori_loop(0, 3, body, mixture.weights)
    return NormalMixture(weights, mixture.means, mixture.choleskys)


def fit_mixture(
    key: Key[Array, ""],
    x: Float[Array, "n dim"],
    num_components: int,
    *,
    law: Law | None = None,
    num_steps: int | None = None,
    centres: Float[Array, "k dim"] | None = None,
    shared: float | None = None,
) -> NormalMixture:
    """Fit a full-covariance mixture to the rows of `x`, from `centres` or from rows far from each other.

    The larger `shared`, the more alike are the components' shapes.
    """
    law = law or Law()
    dim = x.shape[1]
    if centres is None:
        centres = jnp.asarray(_spread_out(key, np.asarray(x), num_components))
    scale = num_components ** (-1.0 / dim) * jnp.std(x, axis=0) + 1e-6
    start = NormalMixture(
        weights=jnp.full(num_components, 1.0 / num_components),
        means=centres,
        choleskys=jnp.tile(jnp.diag(scale), (num_components, 1, 1)),
    )
    shared = law.alike[1] if shared is None else shared
    return _em(x, start, num_steps or law.steps, jnp.asarray(shared, float), law)


@eqx.filter_jit
def fit_independent(x: Float[Array, "n dim"], law: Law) -> IndependentMixtures:
    """Fit a mixture on the line to every column of `x`, from components at its quantiles."""
    num_components = law.few_components
    ridge = law.ridge * jnp.var(x, axis=0)[:, None] + 1e-12
    levels = (jnp.arange(num_components) + 0.5) / num_components
    means = jnp.quantile(x, levels, axis=0).T
    gaps = jnp.diff(means, axis=1)
    near = jnp.minimum(jnp.append(gaps, gaps[:, -1:], axis=1), jnp.insert(gaps, 0, gaps[:, 0], axis=1))
    start = IndependentMixtures(
        weights=jnp.full(means.shape, 1.0 / num_components), means=means, scales=near + jnp.sqrt(ridge)
    )

    def body(_, mixture):
        def one(column, weights, means, scales):
            logs = jnp.log(weights) + norm.logpdf(column[:, None], means, scales)
            responsibility = jax.nn.softmax(logs, axis=1)
            mass = responsibility.sum(0) + 1e-3
            return mass, column @ responsibility / mass, column**2 @ responsibility / mass

        mass, first, second = jax.vmap(one)(x.T, mixture.weights, mixture.means, mixture.scales)
        scales = jnp.sqrt(jnp.maximum(second - first**2, 0.0) + ridge)
        return IndependentMixtures(mass / mass.sum(1, keepdims=True), first, scales)

    return jax.lax.fori_loop(0, law.line_steps, body, start)
