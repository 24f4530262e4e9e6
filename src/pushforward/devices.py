"""Arrays on many devices: the same on all of them, or back on one."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def batch_mesh() -> Mesh | None:
    """Return all devices of the run in one row, or `None` where there is only one: nothing to configure."""
    devices = jax.devices()
    return Mesh(np.asarray(devices), ("batch",)) if len(devices) > 1 else None


def on_all(tree: Any, mesh: Mesh | None) -> Any:
    """Put the same arrays on every device of all processes."""
    if mesh is None:
        return tree
    everywhere = NamedSharding(mesh, PartitionSpec())

    def placed(leaf: jax.Array) -> jax.Array:
        if leaf.sharding == everywhere or jax.process_count() == 1:
            return jax.device_put(leaf, everywhere)
        # Every process holds the whole; none waits for another here.
        whole = np.asarray(leaf)
        return jax.make_array_from_callback(whole.shape, everywhere, lambda index: whole[index])

    return _moved(tree, placed)


def on_own(tree: Any, mesh: Mesh | None) -> Any:
    """Return arrays that are the same everywhere on this process's own device."""
    return tree if mesh is None else _moved(tree, lambda leaf: jax.device_put(np.asarray(leaf)))


def _moved(tree: Any, move: Callable[[jax.Array], jax.Array]) -> Any:
    """Return a tree with each array moved; of a key, the numbers in it."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(move(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        return move(leaf)

    return jax.tree.map(one, tree)
