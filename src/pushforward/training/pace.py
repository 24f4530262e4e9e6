"""How steps are shared out: over devices, processes and tiles of a batch, and between looks at the clock."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Key

from pushforward import distributed
from pushforward.programs import is_exhausted
from pushforward.training.outcome import Outcome


def next_stride(stride: int, taken: int, seconds: float, look_every: float) -> int:
    """Return how many steps to take at once: twice as many while they are quick, half when they are slow."""
    if seconds > look_every:
        return max(1, taken // 2)
    return 2 * stride if taken == stride and seconds < look_every / 2 else stride


class Crew:
    """The devices that share the batches, and the processes, if there are `many`.

    All take the same steps, and stop when any of them must; one alone needs nobody's consent.
    """

    def __init__(self, mesh: Mesh | None = None, *, many: bool = False):
        self.mesh, self.many = mesh, many

    def ears(self) -> AbstractContextManager[Any]:
        """Return a context in which a signal to stop is heard between steps; alone, it may tear one."""
        self._ears = distributed.Ears()
        return self._ears if self.many else nullcontext()

    def place(self, tree: Any) -> Any:
        """Put arrays where the steps need them: the same on every device."""
        if self.mesh is None:
            return tree
        everywhere = NamedSharding(self.mesh, PartitionSpec())
        return _moved(tree, lambda leaf: _to_all(leaf, everywhere))

    def back(self, tree: Any) -> Any:
        """Return arrays on this process's own device, for all that is no step."""
        return tree if self.mesh is None else _moved(tree, lambda leaf: jax.device_put(np.asarray(leaf)))

    def prepare(self, program: Any, *arguments: Any) -> Any:
        """Compile the program before anybody waits in it: a collective gives a late process half a minute."""
        return program.lower(*arguments).compile() if self.many else program

    def agree(self, steps: int, *, stop: bool, patient: bool) -> tuple[int, Outcome | None]:
        """Return how many steps to take, or why to take none: what process 0 wants, unless one must stop."""
        if not self.many:
            return steps, Outcome.OUT_OF_TIME if stop else None
        if patient:
            # Collectives lose patience with a process that still compiles; this meeting does not. It is
            # slow to see that one is lost, though, which a collective sees at once.
            distributed.wait_for_all()
        said = distributed.agree([steps, stop, self._ears.asked])
        if said[:, 2].any():
            return 0, Outcome.INTERRUPTED
        return int(said[0, 0]), Outcome.OUT_OF_TIME if said[:, 1].any() else None

    def blame(self, error: BaseException) -> Outcome:
        """Name the outcome that an error means."""
        if self.many and distributed.is_loss(error):
            return Outcome.LOST_PROCESS
        return Outcome.OUT_OF_MEMORY if is_exhausted(error) else Outcome.FAILED


def _moved(tree: Any, move: Callable[[jax.Array], jax.Array]) -> Any:
    """Return a tree with each array moved; of a key, the numbers in it."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(move(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        return move(leaf)

    return jax.tree.map(one, tree)


def _to_all(leaf: jax.Array, everywhere: NamedSharding) -> jax.Array:
    if leaf.sharding == everywhere:
        return leaf
    if jax.process_count() == 1:
        return jax.device_put(leaf, everywhere)
    # Every process holds the whole; none waits for another here.
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, everywhere, lambda index: whole[index])


def batch_mesh() -> Mesh | None:
    """Return all devices of the run in one row, or `None` where there is only one: nothing to configure."""
    devices = jax.devices()
    return Mesh(np.asarray(devices), ("batch",)) if len(devices) > 1 else None


def over_devices(z: Float[Array, "n latent"], mesh: Mesh | None) -> Float[Array, "n latent"]:
    """Lay the rows of a batch out over the devices; the compiler divides all that follows from them."""
    if mesh is None:
        return z
    return jax.lax.with_sharding_constraint(z, NamedSharding(mesh, PartitionSpec("batch")))


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
