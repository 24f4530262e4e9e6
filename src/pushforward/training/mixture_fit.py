"""A mixture of normals by expectation-maximisation: the latent law of the default recipe, and a baseline."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.latents import NormalMixture

RIDGE = 1e-3
"""Added to every covariance, in units of the data's own variance: no component can fall onto a point."""

SHRINK_FROM = 4
"""Dimensions from which on a component's rows may be too few for a covariance of its own."""


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
def _em(x: Float[Array, "n dim"], mixture: NormalMixture, num_steps: int) -> NormalMixture:
    ridge = RIDGE * jnp.diag(jnp.var(x, axis=0) + 1e-12)

    def body(_, mixture):
        responsibility = jax.nn.softmax(_component_logs(mixture, x), axis=1)
        # A component that lost all its points keeps a crumb, so that nothing divides by zero.
        mass = responsibility.sum(0) + 1e-3
        means = (responsibility.T @ x) / mass[:, None]

        def covariance(r, mean, m):
            y = x - mean
            return (r[:, None] * y).T @ y / m + ridge

        covariances = jax.vmap(covariance)(responsibility.T, means, mass)
        if x.shape[1] >= SHRINK_FROM:
            # As if each component had seen as many more rows as there are coordinates, with the shape of all.
            pooled = jnp.tensordot(mass / mass.sum(), covariances, 1)
            share = (mass / (mass + x.shape[1]))[:, None, None]
            covariances = share * covariances + (1.0 - share) * pooled
        return NormalMixture(mass / mass.sum(), means, jnp.linalg.cholesky(covariances))

    return jax.lax.fori_loop(0, num_steps, body, mixture)


@eqx.filter_jit
def mean_log_density(mixture: NormalMixture, x: Float[Array, "n dim"]) -> Float[Array, ""]:
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
    num_steps: int = 60,
    centres: Float[Array, "k dim"] | None = None,
) -> NormalMixture:
    """Fit a full-covariance mixture to the rows of `x`, from `centres` or from rows far from each other."""
    dim = x.shape[1]
    if centres is None:
        centres = jnp.asarray(_spread_out(key, np.asarray(x), num_components))
    scale = num_components ** (-1.0 / dim) * jnp.std(x, axis=0) + 1e-6
    start = NormalMixture(
        weights=jnp.full(num_components, 1.0 / num_components),
        means=centres,
        choleskys=jnp.tile(jnp.diag(scale), (num_components, 1, 1)),
    )
    return _em(x, start, num_steps)
