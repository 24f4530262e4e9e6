"""Random numbers that cost little: the cipher of JAX's keys, written out so that the compiler fuses it.

They have 32 bits in every mode, so that the same key gives the same points on every device and under x64.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, UInt32

Word = UInt32[Array, "..."]


def fold_in(key: Key[Array, ""], data: Word) -> Key[Array, ""]:
    """Return `jax.random.fold_in(key, data)`."""
    if not _is_threefry(key):
        return jax.random.fold_in(key, data)
    words = _threefry(jax.random.key_data(key), jnp.zeros_like(data), data)
    return jax.random.wrap_key_data(jnp.stack(words))


def uniform_and_normal(
    key: Key[Array, ""], rows: int, dim: int
) -> tuple[Float[Array, "rows dim"], Float[Array, "rows dim"]]:
    """Return uniforms on `[0, 1)` and standard normals; a row does not depend on how many there are."""
    words = jax.random.key_data(key) if _is_threefry(key) else jax.random.bits(key, (2,), jnp.uint32)
    row, column = (jax.lax.broadcasted_iota(jnp.uint32, (rows, dim), axis) for axis in (0, 1))
    one, other = (_unit(word) for word in _threefry(words, column, row))
    # From the open interval (-1, 1), at whose ends the normal quantile is infinite.
    least = np.nextafter(np.float32(-1.0), np.float32(0.0))
    return other, np.float32(np.sqrt(2.0)) * jax.lax.erf_inv(jnp.maximum(2.0 * one - 1.0, least))


def _is_threefry(key: Key[Array, ""]) -> bool:
    return str(jax.random.key_impl(key)) == "threefry2x32"


def _unit(word: Word) -> Float[Array, "..."]:
    """Return the numbers on `[0, 1)` whose 23 digits are the first of the bits."""
    return jax.lax.bitcast_convert_type((word >> 9) | np.uint32(0x3F800000), jnp.float32) - 1.0


def _threefry(words: UInt32[Array, "2"], one: Word, other: Word) -> tuple[Word, Word]:
    """Return Threefry-2x32 of blocks, with twenty rounds (Salmon et al. 2011)."""
    keys = (words[0], words[1], words[0] ^ words[1] ^ np.uint32(0x1BD11BDA))
    x, y = one + keys[0], other + keys[1]
    for i in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            x = x + y
            y = ((y << turn) | (y >> (32 - turn))) ^ x
        x, y = x + keys[(i + 1) % 3], y + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x, y
