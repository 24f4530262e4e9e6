"""Stochastic gradient Langevin dynamics: one chain on minibatches, its last iterates for draws."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from blackjax.sgmcmc.diffusions import overdamped_langevin
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from pushforward.mcmc.chains import pick


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
    return Algorithm(
        init=eqx.Partial(
            _init,
            dim=target.dim,
            num_kept=check_count(num_kept, "num_kept"),
            scale=jnp.asarray(check_positive(initial_scale, "initial_scale")),
        ),
        step=eqx.Partial(
            _step,
            target=target,
            step_size=jnp.asarray(check_positive(step_size, "step_size")),
            decay=jnp.asarray(check_positive(decay, "decay", zero=True)),
            keep_every=check_count(keep_every, "keep_every"),
        ),
        sample=_sample,
    )


def _init(key: Key[Array, ""], *, dim: int, num_kept: int, scale: Float[Array, ""]) -> Walk:
    position = scale * jax.random.normal(key, (dim,))
    return Walk(position, jnp.tile(position, (num_kept, 1)), jnp.zeros((), int))


def _step(
    key: Key[Array, ""],
    state: Walk,
    *,
    target: Target,
    step_size: Float[Array, ""],
    decay: Float[Array, ""],
    keep_every: int,
) -> tuple[Walk, dict[str, Any]]:
    eps = step_size / (state.steps + 1.0) ** decay
    score = target.score(state.position)
    # BlackJAX's hints say `float` where an array is as good.
    moved: Any = overdamped_langevin()(key, state.position, score, eps)  # pyright: ignore[reportArgumentType]
    # Iterates of one stretch overwrite each other, so that its last one stays.
    place = (state.steps // keep_every) % state.last.shape[0]
    last = state.last.at[place].set(moved)
    info = {"score_norm": jnp.linalg.norm(score), "step_size": eps}
    return Walk(moved, last, state.steps + 1), info


def _sample(key: Key[Array, ""], state: Walk, n: int) -> Float[Array, "n dim"]:
    return pick(key, state.last, n)
