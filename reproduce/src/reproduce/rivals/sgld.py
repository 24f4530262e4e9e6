"""Stochastic gradient Langevin dynamics: one chain on minibatches, its last iterates for draws."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from reproduce.rivals.chains import pick


class Walk(NamedTuple):
    """Where the chain is, its last iterates in a ring, and how many steps it has taken."""

    position: Float[Array, " dim"]
    last: Float[Array, "kept dim"]
    steps: Int[Array, ""]


def algorithm(
    target: Target,
    step_size: float = 0.1,
    decay: float = 0.55,
    num_kept: int = 100,
    keep_every: int = 1,
    initial_scale: float = 0.1,
) -> Algorithm:
    """Return Langevin dynamics with the falling steps of Welling and Teh.

        x <- x + eps_t s(x) + sqrt(2 eps_t) xi,   eps_t = step_size / (t + 1)^decay        (facts 3.2, 6.3)

    Give it minibatches with `minibatched`: the score is then of `n / size` times the batch. Noise
    of the minibatch adds to that of the dynamics, and the chain is wider than the posterior by it.

    **Arguments:**

    - `step_size`, `decay`: the paper has 0.1 and 0.55.
    - `num_kept`: draws are the last iterates; the paper keeps 100.
    - `keep_every`: of so many iterates one is kept. Neighbours are nearly the same point.
    - `initial_scale`: the chain starts at `N(0, initial_scale^2 I)`.
    """
    chain = _Chain(
        target,
        step_size=jnp.asarray(check_positive(step_size, "step_size")),
        decay=jnp.asarray(check_positive(decay, "decay", zero=True)),
        initial_scale=jnp.asarray(check_positive(initial_scale, "initial_scale")),
        num_kept=check_count(num_kept, "num_kept"),
        keep_every=check_count(keep_every, "keep_every"),
    )
    return Algorithm(chain.init, chain.step, chain.sample)


class _Chain(eqx.Module):
    target: Target
    step_size: Float[Array, ""]
    decay: Float[Array, ""]
    initial_scale: Float[Array, ""]
    num_kept: int = eqx.field(static=True)
    keep_every: int = eqx.field(static=True)

    def init(self, key: Key[Array, ""]) -> Walk:
        position = self.initial_scale * jax.random.normal(key, (self.target.dim,))
        return Walk(position, jnp.tile(position, (self.num_kept, 1)), jnp.zeros((), int))

    def step(self, key: Key[Array, ""], state: Walk) -> tuple[Walk, dict[str, Any]]:
        eps = self.step_size / (state.steps + 1.0) ** self.decay
        score = self.target.score(state.position)
        noise = jnp.sqrt(2.0 * eps) * jax.random.normal(key, score.shape)
        moved = state.position + eps * score + noise
        # Iterates of one stretch overwrite each other, so that its last one stays.
        place = (state.steps // self.keep_every) % self.num_kept
        info = {"score_norm": jnp.linalg.norm(score), "step_size": eps}
        return Walk(moved, state.last.at[place].set(moved), state.steps + 1), info

    def sample(self, key: Key[Array, ""], state: Walk, n: int) -> Float[Array, "n dim"]:
        return pick(key, state.last, n)
