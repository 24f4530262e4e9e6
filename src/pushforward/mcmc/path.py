"""The path from a start law to a target, and the particles on it."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.latents import Latent


class Population(NamedTuple):
    """Weighted equally: the particles with both log densities."""

    x: Float[Array, "n dim"]
    log_target: Float[Array, " n"]
    log_start: Float[Array, " n"]


class Between(eqx.Module):
    """The two ends of the path; a log density that is not a number counts as no density at all."""

    target: Target
    start: Latent

    def ends(self, x: Float[Array, " dim"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return `log q(x)` and `log q0(x)`."""
        log_target = self.target.log_density(x)
        # Plus infinity would win every comparison; a point where the density blows up is refused like a NaN.
        log_target = jnp.where(jnp.isfinite(log_target), log_target, -jnp.inf)
        return log_target, self.start.log_density(x)

    def value_and_slope(
        self, x: Float[Array, " dim"], b: Float[Array, ""]
    ) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " dim"]]:
        """Return both ends and the gradient of the tempered log density."""

        def tempered(point):
            log_target, log_start = self.ends(point)
            return b * log_target + (1.0 - b) * log_start, (log_target, log_start)

        slope, (log_target, log_start) = jax.grad(tempered, has_aux=True)(x)
        return log_target, log_start, jnp.where(jnp.isfinite(slope), slope, 0.0)


def mix(
    log_target: Float[Array, " n"], log_start: Float[Array, " n"], b: Float[Array, ""] | float
) -> Float[Array, " n"]:
    """Return the log density of the path at `b`."""
    # 0 * -inf would be NaN at b = 0 or b = 1.
    return jnp.where(log_target == -jnp.inf, -jnp.inf, b * log_target) + (1.0 - b) * log_start
