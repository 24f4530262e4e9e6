"""Which latents may a draw have come from: a law of `z` given `u`, where importance must look."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Key

from pushforward.latents import IndependentMixtures, Latent, Normal, NormalMixture
from reproduce.noise.head import NoiseHead

NEWTON_STEPS = 6
LONGEST = 1.0  # a Gauss-Newton step is cut to this length a coordinate, in the latents' units

WIDEN, DEFENCE = 1.15, 0.1
"""The local normal is wider than the curvature says, and a tenth of all proposals come from the broad one."""


class Guide(eqx.Module):
    """`r(z | u)`: nine parts a normal at the most likely latent, one part the best linear guess of it.

    The most likely latent is found from the linear guess by Gauss-Newton steps on
    `log p(z) - |u - g(z)|^2 / 2 sigma^2`; the normal's precision is the curvature there. It depends on `u`
    alone, never on the latent that `u` was made from, which is what keeps the estimates unbiased.
    """

    head: NoiseHead
    prior: Latent
    slope: Float[Array, "map dim"]
    offset: Float[Array, " map"]
    broad: Float[Array, "map map"]  # Cholesky factor of the covariance that the linear guess leaves over

    def locate(self, u: Float[Array, " dim"]) -> tuple[Float[Array, " map"], Float[Array, "map map"]]:
        """Return the most likely latent, and the Cholesky factor of the precision there."""

        def curvature(z):
            jacobian = jax.jacfwd(self.head.network)(z)
            weight = self.head.sigma(z) ** -2.0
            precision = jacobian.T @ (weight[:, None] * jacobian) + _prior_precision(self.prior, z)
            return jacobian, weight, jnp.linalg.cholesky(precision)

        def step(_, z):
            jacobian, weight, factor = curvature(z)
            slope = jacobian.T @ (weight * (u - self.head.network(z))) + jax.grad(self.prior.log_density)(z)
            move = cho_solve((factor, True), slope)
            longest = LONGEST * jnp.sqrt(z.size)
            return z + move * jnp.minimum(1.0, longest / (jnp.linalg.norm(move) + 1e-12))

        first = self.slope @ u + self.offset
        z = jax.lax.fori_loop(0, NEWTON_STEPS, step, first)
        z = jnp.where(jnp.all(jnp.isfinite(z)), z, first)
        return z, curvature(z)[2]

    def propose(
        self, key: Key[Array, ""], u: Float[Array, " dim"], own: Float[Array, "owns map"], num_latents: int
    ) -> tuple[Float[Array, "all map"], Float[Array, " all"]]:
        """Return the latents in `own` and `num_latents` proposed ones, with `log r(z | u)` of all of them."""
        centre, factor = self.locate(u)
        guess = self.slope @ u + self.offset
        key_noise, key_choice = jax.random.split(key)
        eps = jax.random.normal(key_noise, (num_latents, centre.size))
        local = centre + WIDEN * jax.vmap(lambda e: solve_triangular(factor.T, e, lower=False))(eps)
        choice = jax.random.uniform(key_choice, (num_latents, 1)) < DEFENCE
        z = jnp.concatenate([own, jnp.where(choice, guess + eps @ self.broad.T, local)])
        size = centre.size
        white_local = (z - centre) @ factor / WIDEN
        log_local = -0.5 * jnp.sum(white_local**2, axis=1) + jnp.log(jnp.diagonal(factor)).sum()
        log_local = log_local - size * jnp.log(WIDEN)
        white_broad = jax.vmap(lambda e: solve_triangular(self.broad, e, lower=True))(z - guess)
        log_broad = -0.5 * jnp.sum(white_broad**2, axis=1) - jnp.log(jnp.diagonal(self.broad)).sum()
        both = jnp.logaddexp(jnp.log1p(-DEFENCE) + log_local, jnp.log(DEFENCE) + log_broad)
        return z, both - 0.5 * size * jnp.log(2.0 * jnp.pi)


def guide_from(head: NoiseHead, prior: Latent, z: Float[Array, "n map"], u: Float[Array, "n dim"]) -> Guide:
    """Return a guide for `head`; its linear guess is fitted to pairs of latents and draws."""
    mean_z, mean_u = jnp.mean(z, axis=0), jnp.mean(u, axis=0)
    dz, du = z - mean_z, u - mean_u
    spread = du.T @ du / len(u)
    ridge = 1e-6 * jnp.trace(spread) / spread.shape[0] * jnp.eye(spread.shape[0])
    slope = jnp.linalg.solve(spread + ridge, du.T @ dz / len(u)).T
    left = dz - du @ slope.T
    # Wider than what is left over, and never thinner than a crumb of the latents' own spread.
    crumb = 1e-3 * jnp.diag(jnp.var(z, axis=0) + 1e-12)
    broad = jnp.linalg.cholesky(1.5 * (left.T @ left / len(u)) + crumb)
    return Guide(head, prior, slope, mean_z - slope @ mean_u, broad)


def _prior_precision(prior: Latent, z: Float[Array, " map"]) -> Float[Array, "map map"]:
    """Return the curvature of the prior that every step may trust: that of the components `z` belongs to."""
    if isinstance(prior, Normal):
        return jnp.eye(z.size)
    if isinstance(prior, IndependentMixtures):
        share = jax.nn.softmax(jnp.log(prior.weights) + norm.logpdf(z[:, None], prior.means, prior.scales))
        return jnp.diag(jnp.sum(share * prior.scales**-2.0, axis=1))
    assert isinstance(prior, NormalMixture)
    share = jax.nn.softmax(prior.component_log_densities(z))
    eye = jnp.eye(z.size, dtype=z.dtype)
    inverses = jax.vmap(lambda c: solve_triangular(c, eye, lower=True))(prior.choleskys)
    share = share if len(inverses) > 1 else jnp.ones(1)
    return jnp.einsum("k,kji,kjl->il", share, inverses, inverses)
