"""Doubly stochastic variational inference (Titsias and Lazaro-Gredilla 2014): a diagonal normal law."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive

SLOWER = 0.1  # the scales move at a tenth of the rate of the means


class MeanField(NamedTuple):
    """The variational law `N(mean, diag(scale^2))`, and how many steps were taken."""

    mean: Float[Array, " dim"]
    scale: Float[Array, " dim"]
    steps: Int[Array, ""]


def algorithm(
    target: Target,
    learning_rate: float = 1e-7,
    stage: int = 100,
    stage_decay: float = 0.95,
    initial_scale: float = 0.1,
    num_draws: int = 1,
) -> Algorithm:
    """Return stochastic ascent of the evidence bound.

        theta = mean + scale z,   g = score(theta)
        mean <- mean + rho g,     scale <- scale + 0.1 rho (g z + 1 / scale)        (facts 6.3)

    with `rho = learning_rate * stage_decay^(t // stage)`. Doubly stochastic with minibatches of the target
    (`minibatched`). The paper's 1e-7 belongs to a score that is summed over all rows.

    **Arguments:**

    - `learning_rate`, `stage`, `stage_decay`: of the schedule; the paper states the first two.
    - `initial_scale`: of every coordinate; means start at zero.
    - `num_draws`: draws of `theta` that a step is averaged over.
    """
    ascent = _Ascent(
        target,
        initial_scale=jnp.asarray(check_positive(initial_scale, "initial_scale")),
        rate=jnp.asarray(check_positive(learning_rate, "learning_rate")),
        decay=jnp.asarray(check_positive(stage_decay, "stage_decay")),
        stage=check_count(stage, "stage"),
        num_draws=check_count(num_draws, "num_draws"),
    )
    return Algorithm(ascent.init, ascent.step, _sample)


class _Ascent(eqx.Module):
    target: Target
    initial_scale: Float[Array, ""]
    rate: Float[Array, ""]
    decay: Float[Array, ""]
    stage: int = eqx.field(static=True)
    num_draws: int = eqx.field(static=True)

    def init(self, key: Key[Array, ""]) -> MeanField:
        del key
        dim = self.target.dim
        return MeanField(jnp.zeros(dim), jnp.full(dim, self.initial_scale, float), jnp.zeros((), int))

    def step(self, key: Key[Array, ""], state: MeanField) -> tuple[MeanField, dict[str, Any]]:
        rho = self.rate * self.decay ** (state.steps // self.stage)
        z = jax.random.normal(key, (self.num_draws, state.mean.size))
        g = jax.vmap(self.target.score)(state.mean + state.scale * z)
        mean = state.mean + rho * jnp.mean(g, axis=0)
        scale = state.scale + SLOWER * rho * (jnp.mean(g * z, axis=0) + 1.0 / state.scale)
        # A step of noise must not carry a scale through zero, where the bound is infinite.
        scale = jnp.maximum(scale, 0.5 * state.scale)
        info = {"score_norm": jnp.mean(jnp.linalg.norm(g, axis=1))}
        return MeanField(mean, scale, state.steps + 1), info


def _sample(key: Key[Array, ""], state: MeanField, n: int) -> Float[Array, "n dim"]:
    return state.mean + state.scale * jax.random.normal(key, (check_count(n, "n"), state.mean.size))
