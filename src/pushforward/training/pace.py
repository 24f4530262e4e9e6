"""How steps are shared out: over devices, processes and tiles of a batch, and between looks at the clock."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Key

from pushforward import distributed
from pushforward.programs import is_exhausted
from pushforward.training.outcome import Outcome


class Pace:
    """Doubles its stride while steps are quick and halves it when they are slow.

    with pace:
        take(pace.steps(left))
    """

    def __init__(self, look_every: float) -> None:
        self._look_every = look_every
        self._stride, self._taken, self._started = 1, 0, 0.0

    def steps(self, left: int) -> int:
        """Return how many of the steps that are left to take at once."""
        self._taken = min(self._stride, left)
        return self._taken

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *_: object) -> None:
        seconds = time.monotonic() - self._started
        if seconds > self._look_every:
            self._stride = max(1, self._taken // 2)
        elif seconds < self._look_every / 2 and self._taken == self._stride:
            self._stride *= 2


class Alone:
    """A run of one process, which needs nobody's consent; its devices share the batches."""

    def __init__(self, mesh: Mesh | None = None):
        self.mesh = mesh

    def __enter__(self) -> "Alone":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def place(self, tree: Any) -> Any:
        """Put arrays where the steps need them: on every device."""
        return on_all(tree, self.mesh)

    def back(self, tree: Any) -> Any:
        """Return arrays on this process's own device, for all that is no step."""
        return on_one(tree) if self.mesh is not None else tree

    def prepare(self, program: Any, *arguments: Any) -> Any:
        """Return the program ready to be called; alone, one may as well compile at the first call."""
        del arguments
        return program

    def agree(self, steps: int, *, stop: bool, patient: bool) -> tuple[int, Outcome | None]:
        """Return how many steps to take, or why to take none."""
        del patient
        return steps, Outcome.OUT_OF_TIME if stop else None

    def blame(self, error: BaseException) -> Outcome:
        """Name the outcome that an error means."""
        return Outcome.OUT_OF_MEMORY if is_exhausted(error) else Outcome.FAILED


class Crew(Alone):
    """A run of many processes: all take the same steps, and stop when any of them must."""

    def __enter__(self) -> "Alone":
        self._ears = distributed.Ears().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ears.__exit__()

    def prepare(self, program: Any, *arguments: Any) -> Any:
        """Compile the program before anybody waits in it: a collective gives a late process half a minute."""
        return program.lower(*arguments).compile()

    def agree(self, steps: int, *, stop: bool, patient: bool) -> tuple[int, Outcome | None]:
        """Return how many steps to take, or why to take none: what process 0 wants, unless one must stop."""
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
        return Outcome.LOST_PROCESS if distributed.is_loss(error) else super().blame(error)


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
