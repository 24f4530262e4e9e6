"""KL from both sides: for a map that knows its inverse, what the default trains by."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from pushforward.checks import check_positive
from pushforward.networks.invertible import Invertible, log_density
from pushforward.objectives.base import Latents, Network, Objective, OneKey, Scalar, View, Wants


class TwoSidedKL(Objective):
    """`KL(p || q)`, `KL(q || p)` by the sampler's own weighted draws, and the likelihood of draws of `q`.

    Reverse KL leaves out the thin end of a law, where it costs nothing; the other two want it in proportion.
    `rise` says between which shares of the steps the first two gain their weight: a map far from the target
    would be led by its few wildest draws. The weight of the `draws` falls meanwhile, to `left` of it.

    The gradient of reverse KL is the path gradient, whose noise vanishes as the sampler becomes exact: the
    gradient through the draws, less the gradient of `log p` where the draws are held. Weighted draws ask
    for the latter as well, so one look forward and one back through the map serve all three.
    """

    wants = Wants("nothing", one_derivative=True)

    draws: Float[Array, "m dim"]
    weight: float = eqx.field(static=True, default=0.3)
    left: float = eqx.field(static=True, default=0.3)
    rise: tuple[float, float] = eqx.field(static=True, default=(0.0, 0.02))

    def __check_init__(self):
        check_positive(self.weight, "weight", zero=True)

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return a scalar with the gradient of the weighted sum."""
        latent, n = view.latent, len(z)
        assert latent is not None
        assert isinstance(network, Invertible)
        x, log_det = jax.vmap(network.value_and_log_det)(z)
        log_p = jax.vmap(latent.log_density)(z) - log_det
        held = jax.lax.stop_gradient(x)
        log_q, score = jax.vmap(jax.value_and_grad(view.target.log_density))(held)
        # A draw where the target overflows says nothing, and must not silence the rest.
        said = jnp.isfinite(log_p - log_q) & jnp.all(jnp.isfinite(score), axis=1)
        pull = jnp.sum((x - held) * jnp.where(said[:, None], score, 0.0), axis=1)
        w = jnp.where(said, jax.lax.stop_gradient(log_q - log_p), -jnp.inf)
        # Truncated at sqrt(n) times their mean, which bounds the noise of a single draw (Ionides, 2008).
        share = jax.nn.softmax(jnp.minimum(w, logsumexp(w) - 0.5 * jnp.log(n)))
        # Where few draws carry all the weight, they do not lead. Unweighted draws pull nowhere on average:
        # taken off, nothing is left where weights are even.
        effective = 1.0 / (jnp.sum(share**2) * n)
        first, last = self.rise
        risen = jnp.clip((view.progress - first) / (last - first), 0.0, 1.0)
        own = risen * (said / n + effective * (share - 1.0 / n))
        theirs = jnp.full(n, self.weight * (1.0 - (1.0 - self.left) * risen) / n)
        rows = self.draws[jax.random.randint(key, (n,), 0, len(self.draws))]
        points = jnp.concatenate([jnp.where(said[:, None], held, jax.lax.stop_gradient(z)), rows])
        found = jax.vmap(lambda point: log_density(network, latent, point))(points)
        through = jnp.mean(jnp.where(said, log_p - jnp.where(said, log_q, 0.0) - pull, 0.0))
        return risen * through - jnp.concatenate([own, theirs]) @ found
