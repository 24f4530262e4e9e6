"""Denoising at many noise levels: a matching, and a score net that knows the level."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.checks import check_positive
from pushforward.networks import MLP


class MultiNoise(eqx.Module):
    """`E[ sigma^2 |s(x + sigma e, sigma) + e / sigma|^2 ]` over log-uniform `sigma`: one net, all levels.

    The weight `sigma^2` makes every level count alike. The levels are stratified over the batch, so
    that each step sees the whole range.
    """

    sigma_min: float = eqx.field(static=True, default=0.05)
    sigma_max: float = eqx.field(static=True, default=3.0)

    def __check_init__(self):
        check_positive(self.sigma_min, "sigma_min")
        if check_positive(self.sigma_max, "sigma_max") < self.sigma_min:
            raise ValueError(
                f"`sigma_max` must be at least `sigma_min`, {self.sigma_min}; got {self.sigma_max}."
            )

    def levels(self, key: Key[Array, ""], num_levels: int) -> Float[Array, " n"]:
        """Draw stratified log-uniform noise levels, in random order."""
        key_jitter, key_order = jax.random.split(key)
        strata = jax.random.permutation(key_order, num_levels)
        u = (strata + jax.random.uniform(key_jitter, (num_levels,))) / num_levels
        return self.sigma_min * (self.sigma_max / self.sigma_min) ** u

    def loss(
        self,
        score: Callable[[Float[Array, " dim"], Float[Array, ""]], Float[Array, " dim"]],
        x: Float[Array, "n dim"],
        key: Key[Array, ""],
    ) -> Float[Array, ""]:
        """Return the loss of the noise-conditional `score(x, sigma)` on the draws `x`."""
        key_level, key_noise = jax.random.split(key)
        sigma = self.levels(key_level, x.shape[0])
        noise = jax.random.normal(key_noise, x.shape, dtype=x.dtype)
        predicted = jax.vmap(score)(x + sigma[:, None] * noise, sigma)
        return jnp.mean(jnp.sum((sigma[:, None] * predicted + noise) ** 2, axis=-1))


class NoiseConditional(eqx.Module):
    """A score net for many noise levels: `s(x, sigma) = mlp(x / sqrt(1 + sigma^2), log sigma) / sigma`.

    The input is brought to unit scale and the output carries the `1/sigma` of every smoothed score,
    so that the net itself answers at one scale throughout.
    """

    net: MLP

    def __call__(self, x: Float[Array, " dim"], sigma: Float[Array, ""]) -> Float[Array, " dim"]:
        """Return the score of the draws smoothed by `N(0, sigma^2 I)`, at one point."""
        scaled = x / jnp.sqrt(1.0 + sigma**2)
        return self.net(jnp.append(scaled, jnp.log(sigma))) / sigma
