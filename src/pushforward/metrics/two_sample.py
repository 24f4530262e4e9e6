"""The distance between two sets of draws: what the KSD cannot see, it can."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count, check_key
from pushforward.metrics.inputs import check_pair


def sliced_w2(
    key: Key[Array, ""], x: Float[Array, "n dim"], y: Float[Array, "n dim"], num_directions: int = 64
) -> Float[Array, ""]:
    """Return the sliced Wasserstein-2 distance of two equally large sets of draws.

        sqrt( mean over directions u of W2^2(u.x, u.y) )

    The key chooses the directions, uniformly on the sphere. On a line W2 is exact: sort both sides and pair
    them off. Independent exact draws do not score 0 either; hold it against `floor`.
    """
    check_key(key)
    x, y = check_pair(x, y, equal=True)
    return _sliced_w2(key, x, y, check_count(num_directions, "num_directions"))


@eqx.filter_jit
def _sliced_w2(
    key: Key[Array, ""], x: Float[Array, "n dim"], y: Float[Array, "n dim"], num_directions: int
) -> Float[Array, ""]:
    directions = jax.random.normal(key, (num_directions, x.shape[1]), x.dtype)
    directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
    gaps = _sort(directions @ x.T) - _sort(directions @ y.T)
    return jnp.sqrt(jnp.mean(gaps**2))


def _sort(rows: Float[Array, "k n"]) -> Float[Array, "k n"]:
    """Return each row sorted, by way of integers that are ordered as the floats are.

    XLA on CPU calls back for every comparison of floats but not of integers: 350 ms against 45
    for 64 rows of 20,000.
    """
    integer = {4: jnp.int32, 8: jnp.int64}[rows.dtype.itemsize]
    all_but_sign = jnp.iinfo(integer).max
    patterns = jax.lax.bitcast_convert_type(rows, integer)
    # Below zero, a larger pattern is a smaller number.
    ordered = jnp.sort(jnp.where(patterns < 0, patterns ^ all_but_sign, patterns), axis=1)
    patterns = jnp.where(ordered < 0, ordered ^ all_but_sign, ordered)
    return jax.lax.bitcast_convert_type(patterns, rows.dtype)
