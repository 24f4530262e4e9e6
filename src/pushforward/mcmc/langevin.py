"""The Langevin proposal: a step along the slope and noise, with what makes it exact."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key


def propose(
    key: Key[Array, ""],
    x: Float[Array, "n dim"],
    slope: Float[Array, "n dim"],
    step: Float[Array, "#n 1"],
    look: Callable[[Float[Array, "n dim"]], tuple[Any, Float[Array, "n dim"]]],
    *,
    longest: float,
    root: Float[Array, "dim dim"] | None = None,
) -> tuple[Float[Array, "n dim"], Any, Float[Array, "n dim"], Float[Array, " n"]]:
    """Return where steps from `x` lead, what `look` finds there, the slopes, and the log ratio of proposals.

    Metropolis' rule accepts by the gain in log density plus that ratio. `look` returns what is wanted of
    points, and the slopes there. Drifts are cut at `longest` times the root of the dimension: a steep slope
    must not leap away. `root` is a factor of the covariance of steps, else alike in all directions.
    """
    limit = longest * np.sqrt(x.shape[1])

    def drift(slope):
        raw = 0.5 * step * (slope if root is None else slope @ root)
        norm = jnp.linalg.norm(raw, axis=1, keepdims=True)
        return raw * jnp.minimum(1.0, limit / jnp.maximum(norm, 1e-30))

    forth, noise = drift(slope), jax.random.normal(key, x.shape, x.dtype)
    move = step * (forth + noise)
    new = x + (move if root is None else move @ root.T)
    found, new_slope = look(new)
    back = noise + forth + drift(new_slope)
    return new, found, new_slope, 0.5 * jnp.sum(noise**2 - back**2, axis=1)
