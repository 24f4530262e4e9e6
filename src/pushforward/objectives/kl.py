"""KL training: the gradient of `KL(p || q)` with the fitted score in place of the sampler's own."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.objectives.base import Network, Objective, View, Wants, push


class KL(Objective):
    """`E[ x . stopgrad( s_p(x) - s_q(x) ) ]`, `x = g(z)`: the paper's eq. `igm_kl2`.

    The score-function term of the gradient has mean zero and is dropped.
    """

    wants = Wants(one_derivative=True)

    def surrogate(
        self, key: Key[Array, ""], network: Network, z: Float[Array, "n latent"], view: View
    ) -> Float[Array, ""]:
        """Return the surrogate; only its gradient has a meaning."""
        del key
        x = push(network, z)
        pull = jax.vmap(lambda point: view.score(point) - view.target.score(point))(x)
        return jnp.mean(jnp.sum(x * jax.lax.stop_gradient(pull), axis=-1))
