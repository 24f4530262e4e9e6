"""SteinGAN (Wang and Liu 2016): the sampler follows the steps that SVGD would take with its draws."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.kernels import RBF, median_bandwidth
from pushforward.objectives.base import Network, Objective, View, Wants, push


class SteinGAN(Objective):
    """`- E[ x . stopgrad( phi(x) ) ]`, with SVGD's direction for `phi`.

    `phi_i = sum_j [ k_ij s_q(x_j) + k_ij (x_i - x_j) / h^2 ] / sum_j k_ij`: divided by the kernel's
    row sum, as in its authors' code. It is KL training with a kernel-smoothed
    estimate of the score difference.
    """

    wants = Wants("nothing")

    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return the surrogate; only its gradient has a meaning."""
        del key
        x = push(network, z)
        y = jax.lax.stop_gradient(x)
        bandwidth = median_bandwidth(y)
        k = RBF(bandwidth).gram(y, y)
        rows = k.sum(1, keepdims=True)
        repulsion = (rows * y - k @ y) / bandwidth**2
        direction = (k @ jax.vmap(view.target.score)(y) + repulsion) / rows
        return -jnp.mean(jnp.sum(x * direction, axis=-1))
