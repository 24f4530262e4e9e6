"""KL training without a score: where the map is square and small, the sampler's entropy is known exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.latents import Latent
from pushforward.networks.invertible import Invertible, log_density
from pushforward.objectives.base import Latents, Network, Objective, OneKey, Scalar, View, Wants, push
from pushforward.small_matrices import inverse_and_log_det


def value_and_log_det(network: Network, z: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Scalar]:
    """Return `g(z)` and `log |det dg/dz|` of a square map: its own, or by one tangent a coordinate."""
    if isinstance(network, Invertible):
        return network.value_and_log_det(z)
    x, jvp = jax.linearize(network, z)
    if x.shape != z.shape:
        raise ValueError(
            f"the exact KL needs a square map; this one takes {z.size} latent coordinates to {x.size}. "
            f"Use `latent_dim={x.size}`, or an objective that fits a score."
        )
    return x, inverse_and_log_det(jax.vmap(jvp)(jnp.eye(z.size, dtype=z.dtype)))[1]


def value_and_score(
    network: Network, latent: Latent, z: Float[Array, " dim"]
) -> tuple[Scalar, Float[Array, " dim"]]:
    """Return `log p(x)` and `grad_x log p(x)` at `x = g(z)`, for the law `p` of a square map's draws.

    `log p(g(z)) = log p(z) - log |det J(z)|`, so that its gradient in `z` is `J^T` times the score; where the
    inverse is known, no system need be solved.
    """
    if isinstance(network, Invertible):
        return jax.value_and_grad(lambda x: log_density(network, latent, x))(network(z))

    def log_p(point):
        return latent.log_density(point) - value_and_log_det(network, point)[1]

    value, slope = jax.value_and_grad(log_p)(z)
    return value, slope @ inverse_and_log_det(jax.jacfwd(network)(z))[0]


class ExactKL(Objective):
    """`E[ x . stopgrad( s_p(x) - s_q(x) ) ]`: KL training with the sampler's own score computed, not fitted.

    The limit of the paper's method with a perfect score net. Its value is `KL(p || q)` up to a constant;
    its gradient is the path gradient, whose noise vanishes as the sampler becomes exact (the plain
    gradient of `E[ - log q(g(z)) - log |det dg/dz| ]` keeps a zero-mean term that never does). The
    determinant cannot pass through zero, where the score is infinite, so a map that starts one-to-one
    stays locally so. Costs `dim` tangents and one small solve a draw: comfortable to about 20 dimensions.
    """

    wants = Wants("nothing", one_derivative=True, rows=True)

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the divergence up to a constant, with the path gradient in place of its own."""
        latent = view.latent
        assert latent is not None
        arrays, static = eqx.partition(network, eqx.is_inexact_array)
        frozen = eqx.combine(jax.lax.stop_gradient(arrays), static)
        log_p, s_p = jax.vmap(lambda point: value_and_score(frozen, latent, point))(z)
        x = push(network, z)
        log_q, s_q = jax.vmap(jax.value_and_grad(view.target.log_density))(jax.lax.stop_gradient(x))
        force = s_p - s_q
        if isinstance(network, Invertible):
            # A draw where the target overflows says nothing, and must not silence the rest.
            said = jnp.isfinite(log_p - log_q) & jnp.all(jnp.isfinite(force), axis=-1)
            force = jnp.where(said[:, None], force, 0.0)
            log_p, log_q = jnp.where(said, log_p, 0.0), jnp.where(said, log_q, 0.0)
        path = jnp.sum(x * force, axis=-1)
        return jnp.mean(log_p - log_q + path - jax.lax.stop_gradient(path))
