"""How steps are shared out over devices, processes and tiles of a batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Key

from pushforward import distributed
from pushforward.programs import is_exhausted
from pushforward.training.outcome import Outcome


class Crew:
    """The devices that share the batches, and the processes, if there are `many`.

    All take the same steps, and stop when any of them must; one alone needs nobody's consent.
    """

    def __init__(self, mesh: Mesh | None = None, *, many: bool = False):
        self.mesh, self.many, self.ears = mesh, many, distributed.Ears(listen=many)

    def prepare(self, program: Any, *arguments: Any) -> Any:
        """Compile the program before anybody waits in it: a collective gives a late process half a minute."""
        return program.lower(*arguments).compile() if self.many else program

    def agree(self, steps: int, *, stop: bool, patient: bool) -> tuple[int, Outcome | None]:
        """Return how many steps to take, or why to take none: what process 0 wants, unless one must stop."""
        if not self.many:
            return steps, Outcome.OUT_OF_TIME if stop else None
        if patient:
            # Collectives lose patience with a process that still compiles; this meeting does not.
            distributed.wait_for_all()
        said = distributed.agree([steps, stop, self.ears.asked])
        if said[:, 2].any():
            return 0, Outcome.INTERRUPTED
        return int(said[0, 0]), Outcome.OUT_OF_TIME if said[:, 1].any() else None

    def blame(self, error: BaseException) -> Outcome:
        """Name the outcome that an error means."""
        if self.many and distributed.is_loss(error):
            return Outcome.LOST_PROCESS
        return Outcome.OUT_OF_MEMORY if is_exhausted(error) else Outcome.FAILED


Gradient = Callable[[Float[Array, "n latent"], Key[Array, ""]], Any]


class Batch(NamedTuple):
    """How a batch is worked through: in tiles, by the devices of a mesh."""

    tiles: int
    mesh: Mesh | None
    rows: bool  # whether the loss is a mean over rows, each taken alone and without randomness

    def gradient(self, gradient: Gradient, z: Float[Array, "n latent"], key: Key[Array, ""]) -> Any:
        """Return `gradient(z, key)`, of a batch whose rows are divided among the devices.

        Of a mean over rows, each device takes the gradient of its own, and they are added up in one array.
        Else the compiler divides the work, and adds up the arrays of a gradient one by one.
        """
        if self.mesh is None:
            return in_tiles(gradient, z, key, self.tiles)
        count, divided = self.mesh.size, NamedSharding(self.mesh, PartitionSpec("batch"))
        divide = lambda array: jax.lax.with_sharding_constraint(array, divided)  # noqa: E731
        if not self.rows or len(z) % (count * self.tiles):
            return in_tiles(gradient, divide(z), key, self.tiles)
        restored = ravel_pytree(zeros_of(gradient, z, key))[1]
        raveled = lambda mine: ravel_pytree(in_tiles(gradient, mine, key, self.tiles))[0]  # noqa: E731
        each = jax.vmap(raveled)(divide(z.reshape(count, -1, z.shape[1])))
        return restored(divide(each).mean(axis=0))


def in_tiles(gradient: Gradient, z: Float[Array, "n latent"], key: Key[Array, ""], tiles: int) -> Any:
    """Return the mean of `gradient(z, key)` over tiles of the batch, one after the other.

    Of a loss that is a mean over the batch, this is its gradient, in a fraction of the memory.
    """
    if tiles == 1:
        return gradient(z, key)
    each = z.reshape(tiles, -1, z.shape[1]), jax.random.split(key, tiles)
    nothing = zeros_of(gradient, each[0][0], each[1][0])
    add = lambda total, one: (jax.tree.map(jnp.add, total, gradient(*one)), None)  # noqa: E731
    total, _ = jax.lax.scan(add, nothing, each)
    return jax.tree.map(lambda a: a / tiles, total)


def zeros_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return zeros in the shapes of what a function returns, without calling it."""
    shapes = eqx.filter_eval_shape(function, *arguments)
    return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)
