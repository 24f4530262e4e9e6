"""A batch over many devices, or over time: the same gradients, in other places or in smaller pieces."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Key


def batch_mesh() -> Mesh | None:
    """Return all devices of the run in one row, or `None` where there is only one: nothing to configure."""
    devices = jax.devices()
    return Mesh(np.asarray(devices), ("batch",)) if len(devices) > 1 else None


def over_devices(z: Float[Array, "n latent"], mesh: Mesh | None) -> Float[Array, "n latent"]:
    """Lay the rows of a batch out over the devices; the compiler divides all that follows from them."""
    if mesh is None:
        return z
    return jax.lax.with_sharding_constraint(z, NamedSharding(mesh, PartitionSpec("batch")))


def on_all(tree: Any, mesh: Mesh | None) -> Any:
    """Put the same arrays on every device: parameters, and what belongs to them."""
    if mesh is None:
        return tree
    everywhere = NamedSharding(mesh, PartitionSpec())
    return jax.tree.map(lambda leaf: _on_all(leaf, everywhere) if isinstance(leaf, jax.Array) else leaf, tree)


def _on_all(leaf: jax.Array, everywhere: NamedSharding) -> jax.Array:
    if leaf.sharding == everywhere:
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        data = _on_all(jax.random.key_data(leaf), everywhere)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    if jax.process_count() == 1:
        return jax.device_put(leaf, everywhere)
    # Every process holds the whole; none waits for another here.
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, everywhere, lambda index: whole[index])


def on_one(tree: Any) -> Any:
    """Return arrays that are the same on every device as arrays of this process's first device."""
    return jax.tree.map(lambda leaf: _on_one(leaf) if isinstance(leaf, jax.Array) else leaf, tree)


def _on_one(leaf: jax.Array) -> jax.Array:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_on_one(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
    return jax.device_put(np.asarray(leaf))


def in_tiles(
    gradient: Callable[[Float[Array, "n latent"], Key[Array, ""]], Any],
    z: Float[Array, "n latent"],
    key: Key[Array, ""],
    num_tiles: int,
) -> Any:
    """Return the mean of `gradient(z, key)` over tiles of the batch, one after the other.

    Of a loss that is a mean over the batch, this is its gradient, in a fraction of the memory.
    """
    if num_tiles == 1:
        return gradient(z, key)
    tiles = z.reshape(num_tiles, -1, z.shape[1])
    keys = jax.random.split(key, num_tiles)
    shapes = jax.eval_shape(gradient, tiles[0], keys[0])

    def body(total, one):
        return jax.tree.map(jnp.add, total, gradient(*one)), None

    nothing = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)
    total, _ = jax.lax.scan(body, nothing, (tiles, keys))
    return jax.tree.map(lambda a: a / num_tiles, total)
