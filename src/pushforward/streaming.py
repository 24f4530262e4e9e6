"""The one pass from latents to draws, block by block: draw `i` depends on the key and `i` alone.

Functions of a sampler's parts and not methods of it: a bound method of an Equinox module is a module too, and
making a few of them costs as much as making a thousand draws.
"""

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import PyTreeDef
from jaxtyping import Array, Float, Int, Key

from pushforward import bits
from pushforward.frame import Frame
from pushforward.latents import Latent
from pushforward.programs import is_exhausted

GROUP = 1024
"""Draw `i` is row `i % GROUP` of the latents made with `fold_in(key, i // GROUP)`, whatever `n` is."""

TILE_GROUPS = 4
"""Groups that pass the network at once: a 64-wide layer of 4,096 rows still fits in a core's cache."""

OFTEN = 3  # times that a number of draws is asked for before it gets a program of its own

MAX_BLOCK_FLOATS = 2**18
"""Numbers in the output of one call of the large program: what bounds the memory of streaming."""

MAX_ROWS = 2**31 * GROUP  # draws that one key can number

Parts = tuple[Latent, Any, Frame]
"""Latent, network and frame: all that draws depend on. A sampler's story must not compile a program anew."""


def is_traced(parts: Parts, key: Key[Array, ""]) -> bool:
    """Whether draws would be part of a program that JAX is making, and are no numbers yet."""
    # Inside `jit` every operation is traced, whatever it is applied to: hence the data of the key.
    leaves = (jax.random.key_data(key), *jax.tree.leaves(parts))
    return any(isinstance(leaf, Tracer) for leaf in leaves)


def drawn(parts: Parts, key: Key[Array, ""], num_samples: int, start: int = 0) -> Float[Array, "n dim"]:
    """Return the rows of `stream_iid` by operations of JAX alone: for `jit`, `vmap` and `grad`."""
    group, skip = divmod(start, GROUP)
    groups = math.ceil((skip + num_samples) / GROUP)
    if groups > 4 * TILE_GROUPS:
        groups = TILE_GROUPS * math.ceil(groups / TILE_GROUPS)
    # Whole groups, with nothing moved into them from beyond: the last bits do not depend on `num_samples`.
    rows = jax.lax.optimization_barrier(_draw_groups(parts, key, group, groups))
    return rows[skip : skip + num_samples]


class Plain:
    """A method that Python binds, and not Equinox."""

    def __init__(self, function: Callable):
        self.function = function

    def __get__(self, instance: Any, owner: type) -> Callable:
        return self.function if instance is None else functools.partial(self.function, instance)


Draw = Callable[[Key[Array, ""]], Array]


class Often:
    """Programs for the numbers of draws that one sampler is asked for again and again."""

    def __init__(self):
        self._asked: dict[int, int] = {}
        self._programs: dict[int, Draw] = {}

    def program(self, num_samples: int, parts: Callable[[], Parts]) -> Draw | None:
        """Return the program that makes so many draws of a key, if there is one by now."""
        made = self._programs.get(num_samples)
        if made is None:
            self._asked[num_samples] = asked = self._asked.get(num_samples, 0) + 1
            # It holds all of its draws three times.
            if asked > OFTEN and num_samples * parts()[2].dim <= 16 * MAX_BLOCK_FLOATS:
                leaves, structure = jax.tree.flatten(parts())
                made = functools.partial(_program(structure, num_samples), leaves)
                self._programs[num_samples] = made
        return made


@functools.lru_cache(maxsize=64)
def _program(structure: PyTreeDef, num_samples: int) -> Callable[[list[Array], Key[Array, ""]], Array]:
    def draw(leaves: list[Array], key: Key[Array, ""]) -> Float[Array, "n dim"]:
        return drawn(jax.tree.unflatten(structure, leaves), key, num_samples)

    return jax.jit(draw)


def stream_iid(parts: Parts, key: Key[Array, ""], remaining: int, start: int) -> Iterator[np.ndarray]:
    """Yield `remaining` independent draws from number `start` on."""
    group, skip = divmod(start, GROUP)
    large = TILE_GROUPS * math.ceil(MAX_BLOCK_FLOATS / (GROUP * TILE_GROUPS * parts[2].dim))
    while remaining > 0:
        # The large program is worth its waste only when more than a quarter of it is wanted.
        groups = large if skip + remaining > large * GROUP // 4 else 1
        try:
            block = np.asarray(_draw_groups(parts, key, group, groups))
        except (jax.errors.JaxRuntimeError, MemoryError) as error:
            if groups == 1 or not is_exhausted(error):
                raise
            large = max(1, large // 2)
            warnings.warn(f"memory ran out: drawing {large * GROUP:,} rows at a time now.", stacklevel=2)
            continue
        block = block[skip : skip + remaining]
        yield block
        group, skip, remaining = group + groups, 0, remaining - len(block)


def stream_sobol(parts: Parts, key: Key[Array, ""], remaining: int, start: int) -> Iterator[np.ndarray]:
    """Yield points `start`, `start + 1`, ... of a scrambled Sobol sequence, pushed forward."""
    from scipy.stats import qmc  # half a second to import, which only those who ask for Sobol should pay

    latent, _, frame = parts
    seed = int(jax.random.bits(key, dtype=jnp.uint32))
    # 64 bits, since those of the default run out after 2^30 points.
    engine = qmc.Sobol(latent.num_uniforms, bits=64, rng=np.random.default_rng(seed))
    rows = GROUP * TILE_GROUPS
    tile, skip = divmod(start, rows)
    for _ in range(tile):
        # Not `fast_forward`, which does not know 64 bits; beside the network this costs little.
        engine.random(rows)
    while remaining > 0:
        uniforms = jax.device_put(engine.random(rows).astype(frame.centre.dtype))
        block = np.asarray(_draw_uniforms(parts, uniforms))[skip : skip + remaining]
        yield block
        skip, remaining = 0, remaining - len(block)


def gather(blocks: Iterator[np.ndarray], num_samples: int) -> np.ndarray:
    """Return the blocks as one array; a single block is not copied."""
    first, row = next(blocks), 0
    if len(first) == num_samples:
        return first
    out = np.empty((num_samples, first.shape[1]), dtype=first.dtype)
    for block in itertools.chain([first], blocks):
        out[row : row + len(block)] = block
        row += len(block)
    return out


# Not `eqx.filter_jit`, which sorts the leaves into arrays and others at every call: all are arrays here.
@functools.partial(jax.jit, static_argnums=3)
def _draw_groups(
    parts: Parts, key: Key[Array, ""], first: int | Int[Array, ""], num_groups: int
) -> Float[Array, "n dim"]:
    """Draw groups `first`, `first + 1`, ... of `GROUP` rows each, a cache-sized tile at a time."""
    groups = first + jnp.arange(num_groups)
    # Fewer than a tile, or what is left of a block after memory ran out.
    if num_groups <= TILE_GROUPS or num_groups % TILE_GROUPS:
        return _draw_tile(parts, key, groups)
    tiles = jax.lax.map(lambda tile: _draw_tile(parts, key, tile), groups.reshape(-1, TILE_GROUPS))
    return tiles.reshape(-1, parts[2].dim)


def _draw_tile(parts: Parts, key: Key[Array, ""], groups: Int[Array, " groups"]) -> Float[Array, "n dim"]:
    latent, network, frame = parts
    z = jax.vmap(lambda group: latent.sample(bits.fold_in(key, group), GROUP))(groups.astype(jnp.uint32))
    # Latents have the digits of 32 bits in every mode, and so has what is made of them.
    return jax.vmap(lambda z: frame(network(z)))(z.reshape(-1, latent.dim).astype(frame.centre.dtype))


@jax.jit
def _draw_uniforms(parts: Parts, uniforms: Float[Array, "n uniforms"]) -> Float[Array, "n dim"]:
    latent, network, frame = parts
    return jax.vmap(lambda u: frame(network(latent.from_uniform(u))))(uniforms)
