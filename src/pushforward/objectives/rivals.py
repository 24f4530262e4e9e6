"""Objectives of others that need no fitted score: they see draws and the target through a kernel."""

import jax
import jax.numpy as jnp

from pushforward.kernels import RBF, RadialKernel, median_bandwidth
from pushforward.objectives.base import Latents, Network, Objective, OneKey, Scalar, View, Wants, push


class KSD(Objective):
    """KSD training (Hu et al. 2018), `(1/n^2) sum_ij k0(x_i, x_j)`: a V-statistic, as in its authors' code.

    The gradient runs through the kernel and through the target's score (second derivatives of `log q`).
    """

    wants = Wants("nothing")

    kernel: RadialKernel = RBF(1.0)

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the squared discrepancy."""
        x = push(network, z)
        s = jax.vmap(view.target.score)(x)
        return jnp.mean(self.kernel.stein_gram(x, x, s, s))


class SteinGAN(Objective):
    """SteinGAN (Wang and Liu 2016): `- E[ x . stopgrad( phi(x) ) ]`, with SVGD's direction for `phi`.

    `phi_i = sum_j [ k_ij s_q(x_j) + k_ij (x_i - x_j) / h^2 ] / sum_j k_ij`: divided by the kernel's row
    sum, as in its authors' code. It is KL training with a kernel-smoothed estimate of the score difference.
    """

    wants = Wants("nothing")

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the surrogate; only its gradient has a meaning."""
        x = push(network, z)
        y = jax.lax.stop_gradient(x)
        bandwidth = median_bandwidth(y)
        k = RBF(bandwidth).gram(y, y)
        rows = k.sum(1, keepdims=True)
        repulsion = (rows * y - k @ y) / bandwidth**2
        direction = (k @ jax.vmap(view.target.score)(y) + repulsion) / rows
        return -jnp.mean(jnp.sum(x * direction, axis=-1))
