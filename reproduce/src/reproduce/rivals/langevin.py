"""Unadjusted overdamped Langevin dynamics, many chains at once: the paper's LD."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from reproduce.rivals.chains import pick, rms, start

Positions = Float[Array, "n dim"]


def algorithm(
    target: Target, num_chains: int = 1000, step_size: float = 0.01, initial_scale: float = 0.1
) -> Algorithm:
    """Return Langevin dynamics without an accept step.

        x <- x + eps s(x) + sqrt(2 eps) xi        (facts 3.2)

    The other convention, `eps/2` and `sqrt(eps)`, moves half as far and is not what the paper ran. The
    noise of all chains comes from one call and not from a key each.

    **Arguments:**

    - `num_chains`: independent chains; each is one draw.
    - `step_size`: `eps`. The stationary law is off by O(eps).
    - `initial_scale`: chains start at `N(0, initial_scale^2 I)`.
    """
    num_chains = check_count(num_chains, "num_chains")
    step_size = check_positive(step_size, "step_size")
    initial_scale = check_positive(initial_scale, "initial_scale")
    return Algorithm(
        init=eqx.Partial(_init, num_chains=num_chains, dim=target.dim, scale=jnp.asarray(initial_scale)),
        step=eqx.Partial(_step, target=target, step_size=jnp.asarray(step_size)),
        sample=pick,
    )


def _init(key: Key[Array, ""], *, num_chains: int, dim: int, scale: Float[Array, ""]) -> Positions:
    return start(key, num_chains, dim, scale)


def _step(
    key: Key[Array, ""], state: Positions, *, target: Target, step_size: Float[Array, ""]
) -> tuple[Positions, dict[str, Any]]:
    score = jax.vmap(target.score)(state)
    noise = jnp.sqrt(2.0 * step_size) * jax.random.normal(key, state.shape)
    return state + step_size * score + noise, {"score_norm": rms(score)}
