"""What the metrics refuse: draws of the wrong shape, too few of them, or not finite."""

from typing import Any

import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float


def check_draws(
    draws: Any, argument: str = "draws", *, dim: int | None = None, at_least: int = 2
) -> Float[Array, "n dim"]:
    """Return `draws` as an array of shape `(n, dim)`, or say what is wrong with it.

    A row that is not finite is an error and never dropped: a sampler that throws points to
    infinity must not be judged by the others. Inside a `jit` there are no values to look at yet,
    and only the shape is checked.
    """
    draws = jnp.asarray(draws)
    expected = f"`{argument}` must have shape (n, {'dim' if dim is None else dim})"
    if draws.ndim == 1 and dim in (None, 1):
        raise ValueError(
            f"{expected}; got {draws.shape}. For draws of one coordinate write `{argument}[:, None]`."
        )
    if draws.ndim != 2 or (dim is not None and draws.shape[1] != dim):
        raise ValueError(f"{expected}; got {draws.shape}.")
    if not jnp.issubdtype(draws.dtype, jnp.floating):
        if not jnp.issubdtype(draws.dtype, jnp.integer):
            raise TypeError(f"`{argument}` must hold real numbers; got dtype {draws.dtype}.")
        draws = draws.astype(float)
    if draws.shape[0] < at_least:
        raise ValueError(
            f"`{argument}` must hold at least {at_least} draws for this metric; got {draws.shape[0]}."
        )
    if not isinstance(draws, Tracer):
        bad = int(jnp.sum(~jnp.all(jnp.isfinite(draws), axis=1)))
        if bad:
            raise ValueError(
                f"`{argument}` must be finite; {bad} of its {draws.shape[0]} rows are not. "
                "The sampler that made them has diverged, or overflows single precision."
            )
    return draws


def check_pair(
    x: Any, y: Any, *, equal: bool = False, at_least: int = 2
) -> tuple[Float[Array, "n dim"], Float[Array, "m dim"]]:
    """Return two sets of draws of the same dimension (and, where asked, of the same size)."""
    x = check_draws(x, "x", at_least=at_least)
    y = check_draws(y, "y", dim=x.shape[1], at_least=at_least)
    if equal and x.shape[0] != y.shape[0]:
        raise ValueError(
            f"`x` and `y` must hold equally many draws; got {x.shape[0]} and {y.shape[0]}. "
            "Cut the longer one, so that both sides carry the same sampling noise."
        )
    return x, y
