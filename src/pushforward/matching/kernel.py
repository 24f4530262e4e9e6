"""A score estimate without a network: the spectral Stein gradient estimator (Shi, Sun and Zhu 2018)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Score
from pushforward.checks import check_positive
from pushforward.kernels import median, squared_distances
from pushforward.matching.base import Direct


class Kernel(Direct):
    """The score of the draws by expanding it in the eigenfunctions `psi_j` of an RBF kernel.

    Nystrom: with `K u_j = l_j u_j` on `n` draws, `psi_j(x) = sqrt(n) / l_j sum_m u_jm k(x, x_m)`, and by
    Stein's identity the coefficient of `psi_j` is `- mean_m grad psi_j(x_m)`. Eigenvalues below
    `1 - energy` of the trace are noise and are cut. Costs `n^3`: for batches up to about a thousand,
    in up to about twenty dimensions.
    """

    energy: float = eqx.field(static=True, default=0.99)

    def __check_init__(self):
        if check_positive(self.energy, "energy") > 1.0:
            raise ValueError(f"`energy` is a share of the trace, at most 1; got {self.energy}.")

    def fit(self, x: Float[Array, "n dim"]) -> Score:
        """Estimate the score of the law of the draws `x`: `- sum_j ( mean_m grad psi_j(x_m) ) psi_j`."""
        n = x.shape[0]
        squared = squared_distances(x, x)
        bandwidth = jnp.sqrt(median(squared))
        gram = jnp.exp(-squared / (2.0 * bandwidth**2))
        values, vectors = jnp.linalg.eigh(gram)
        # eigh sorts ascending: keep the top ones that together hold `energy` of the trace.
        tail = jnp.cumsum(values) / jnp.sum(values)
        kept = (tail > 1.0 - self.energy) & (values > 1e-6 * values[-1])
        weights = jnp.where(kept, jnp.sqrt(n) / jnp.where(kept, values, 1.0), 0.0)
        basis = vectors * weights
        # mean_m grad psi_j(x_m) = mean_m sum_l basis_lj k(x_m, x_l) (x_l - x_m) / h^2.
        pulled = (gram.sum(axis=0)[:, None] * x - gram @ x) / (n * bandwidth**2)
        return jax.tree_util.Partial(_score, x, bandwidth, basis, basis.T @ pulled)


def _score(
    draws: Float[Array, "n dim"], bandwidth: Any, basis: Any, coefficients: Any, x: Float[Array, " dim"]
) -> Float[Array, " dim"]:
    near = jnp.exp(-jnp.sum((x - draws) ** 2, axis=-1) / (2.0 * bandwidth**2))
    return -(near @ basis) @ coefficients
