"""KSD training (Hu et al. 2018): the kernelised Stein discrepancy of the draws, minimised as it stands."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.kernels import RBF, RadialKernel
from pushforward.objectives.base import Network, Objective, View, Wants, push


class KSD(Objective):
    """`(1/n^2) sum_ij k0(x_i, x_j)`: the V-statistic of the squared discrepancy, as in its authors' code.

    The gradient runs through the kernel and through the target's score (second derivatives of `log q`).
    """

    wants = Wants("nothing")

    kernel: RadialKernel = RBF(1.0)

    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return the squared discrepancy."""
        del key
        x = push(network, z)
        s = jax.vmap(view.target.score)(x)
        return jnp.mean(self.kernel.stein_gram(x, x, s, s))
