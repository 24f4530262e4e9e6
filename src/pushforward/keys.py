"""Keys by role: split once, never used twice."""

import zlib

import jax
from jaxtyping import Array, Key


def key_for(key: Key[Array, ""], role: str) -> Key[Array, ""]:
    """Return the key of a role, such as a stage's name: it does not depend on what other roles there are."""
    return jax.random.fold_in(key, zlib.crc32(role.encode()))
