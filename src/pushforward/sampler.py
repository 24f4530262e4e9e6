"""What a user keeps: a latent law, a network and a frame; one pass from latent to draw."""

import json
import math
import os
import warnings
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from pushforward import files
from pushforward.checks import check_choice, check_count, check_key
from pushforward.draws import Draws
from pushforward.failures import is_exhausted
from pushforward.frame import Frame
from pushforward.latents import Latent, Normal, NormalMixture, Uniform
from pushforward.networks import MLP, Modulated, NoiseHead
from pushforward.parameters import Parameters

GROUP = 1024
"""Draw `i` is row `i % GROUP` of the latents made with `fold_in(key, i // GROUP)`, whatever `n` is."""

TILE_GROUPS = 4
"""Groups that pass the network at once: a 64-wide layer of 4,096 rows still fits in a core's cache."""

MAX_BLOCK_FLOATS = 2**18
"""Numbers in the output of one call of the large program: what bounds the memory of streaming."""

MAX_ROWS = 2**31 * GROUP
"""Draws that one key can number."""

_CLASSES = {c.__name__: c for c in (MLP, Modulated, NoiseHead, Normal, Uniform, NormalMixture, Frame)}


class Sampler(eqx.Module):
    """A one-shot sampler `x = frame(network(z))`, `z` drawn from `latent`.

    `about` says where it came from (target, method, settings, metrics): JSON values, kept with it on disk.
    It is stored as text because a static field must be hashable.
    """

    latent: Latent
    network: Any
    frame: Frame
    about_json: str = eqx.field(static=True, default="{}")
    parameters: Parameters | None = eqx.field(static=True, default=None)
    """Names, shapes and constraints of what the coordinates stand for, if the target said so."""

    def __check_init__(self):
        sizes = (self.latent.dim, self.network.in_size, self.network.out_size, self.frame.dim)
        if sizes[0] != sizes[1] or sizes[2] != sizes[3] or min(sizes) < 1:
            raise ValueError(
                f"latent ({sizes[0]}), network ({sizes[1]} -> {sizes[2]}), frame ({sizes[3]}) must fit."
            )
        if self.parameters is not None and self.parameters.dim != sizes[3]:
            raise ValueError(f"parameters ({self.parameters.dim}) and frame ({sizes[3]}) must fit.")

    @property
    def dim(self) -> int:
        """Coordinates of a draw."""
        return self.frame.dim

    @property
    def about(self) -> dict[str, Any]:
        """The sampler's story: target, method, settings, metrics."""
        return json.loads(self.about_json)

    def __call__(self, z: Float[Array, " latent"]) -> Float[Array, " dim"]:
        """Map one latent to one draw."""
        return self.frame(self.network(z))

    def sample(
        self, key: Key[Array, ""], num_samples: int, *, latents: str = "iid", start: int = 0
    ) -> Float[Array, "n dim"]:
        """Draw `num_samples` points in one pass.

        Draw `i` depends on the key and `i` alone: asking for ten or for ten million gives the same first
        ten. At most two programs are compiled, whatever `num_samples` is.

        **Arguments:**

        - `key`: a typed key, `jax.random.key(seed)`.
        - `num_samples`: how many.
        - `latents`: `"iid"`, or `"sobol"` for a scrambled Sobol sequence: the draws are then no longer
            independent of each other, but averages over them converge faster.
        - `start`: the number of the first draw: many machines can make one set of draws, each its own rows.
        """
        blocks = self.stream(key, num_samples, latents=latents, start=start)
        out = np.empty((check_count(num_samples, "num_samples"), self.dim), dtype=self.frame.centre.dtype)
        row = 0
        for block in blocks:
            out[row : row + len(block)] = block
            row += len(block)
        # Not `jnp.asarray`, which compiles a program of its own for every new shape.
        return jax.device_put(out)

    def draws(self, key: Key[Array, ""], num_samples: int, *, latents: str = "iid") -> Draws:
        """Draw as `sample` does, and name the draws: `draws["theta"]`, inside their constraints.

        They can be thinned, refined by MCMC, saved in several formats and handed to ArviZ; see `Draws`.
        """
        x = self.sample(key, num_samples, latents=latents)
        return Draws.of(x, self.parameters, {"target": self.about.get("target"), "latents": latents})

    def stream(
        self, key: Key[Array, ""], num_samples: int, *, latents: str = "iid", start: int = 0
    ) -> Iterator[np.ndarray]:
        """Yield the rows of `sample(key, num_samples, start=start)` block by block, in bounded memory."""
        # Checked here and not in the generators, whose bodies wait for the first block to be asked for.
        check_key(key)
        num_samples = check_count(num_samples, "num_samples")
        start = check_count(start, "start", at_least=0)
        if start + num_samples > MAX_ROWS:
            raise ValueError(f"`start + num_samples` must be at most {MAX_ROWS:,}; use another key beyond.")
        sobol = check_choice(latents, "latents", ("iid", "sobol")) == "sobol"
        return (self._stream_sobol if sobol else self._stream_iid)(key, num_samples, start)

    def _stream_iid(self, key: Key[Array, ""], remaining: int, start: int) -> Iterator[np.ndarray]:
        map_, (group, skip) = self._map(), divmod(start, GROUP)
        large = self._block_groups()
        while remaining > 0:
            # The large program is worth its waste only when more than a quarter of it is wanted.
            groups = large if skip + remaining > large * GROUP // 4 else 1
            try:
                block = np.asarray(_draw_groups(map_, key, jax.device_put(group), groups))
            except (jax.errors.JaxRuntimeError, MemoryError) as error:
                if groups == 1 or not is_exhausted(error):
                    raise
                large = max(1, large // 2)
                warnings.warn(f"memory ran out: drawing {large * GROUP:,} rows at a time now.", stacklevel=2)
                continue
            block = block[skip : skip + remaining]
            yield block
            group, skip, remaining = group + groups, 0, remaining - len(block)

    def _stream_sobol(self, key: Key[Array, ""], remaining: int, start: int) -> Iterator[np.ndarray]:
        from scipy.stats import qmc  # half a second to import, which only those who ask for Sobol should pay

        seed = int(jax.random.bits(key, dtype=jnp.uint32))
        # 64 bits, since those of the default run out after 2^30 points.
        engine = qmc.Sobol(self.latent.num_uniforms, bits=64, rng=np.random.default_rng(seed))
        map_, rows = self._map(), GROUP * TILE_GROUPS
        tile, skip = divmod(start, rows)
        for _ in range(tile):
            # Not `fast_forward`, which does not know 64 bits; beside the network this costs little.
            engine.random(rows)
        while remaining > 0:
            uniforms = jax.device_put(engine.random(rows).astype(self.frame.centre.dtype))
            block = np.asarray(_draw_uniforms(map_, uniforms))[skip : skip + remaining]
            yield block
            skip, remaining = 0, remaining - len(block)

    def _map(self) -> "Sampler":
        """Return the sampler without its story, which must not cause a compilation of its own."""
        return Sampler(self.latent, self.network, self.frame)

    def _block_groups(self) -> int:
        tiles = math.ceil(MAX_BLOCK_FLOATS / (GROUP * TILE_GROUPS * self.dim))
        return TILE_GROUPS * tiles

    def save(self, path: str | os.PathLike) -> None:
        """Write the sampler to one file (safetensors with a JSON header), atomically."""
        parts = {"latent": self.latent, "network": self.network, "frame": self.frame}
        # As text: whoever reads it, with JAX or without, checks it by building it anew.
        names = {} if self.parameters is None else {"parameters": self.parameters.to_json()}
        files.dump(path, parts | names, self.about)

    def export(self, path: str | os.PathLike) -> None:
        """Write the map from latents to draws as an ONNX file, which needs neither JAX nor Python to run.

        Input `latents` of shape `(n, latent)`, output `draws` of shape `(n, dim)`: the coordinates that
        `sample` gives. The law of the latents, the story and the names are in the file's metadata, as JSON.

        **Arguments:**

        - `path`: a file whose name ends in `.onnx`. Needs the extra `export`.
        """
        from pushforward.export import write_onnx  # of no use to those who only draw

        names = {} if self.parameters is None else {"parameters": self.parameters.to_json()}
        write_onnx(path, self.latent, self.network, self.frame, self.about, names)


def load(path: str | os.PathLike) -> Sampler:
    """Read a sampler that `Sampler.save` wrote. Nothing in the file is executed."""
    parts, about = files.load(path, _CLASSES)
    try:
        latent, network, frame = (parts.pop(name) for name in ("latent", "network", "frame"))
        names = parts.pop("parameters", None)
        if parts or not isinstance(latent, Latent) or not isinstance(frame, Frame):
            raise ValueError("its parts are not a latent, a network and a frame.")
        parameters = None if names is None else Parameters.from_json(names)
        return Sampler(latent, network, frame, json.dumps(about), parameters)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise files.BadFileError(f"{path} does not describe a sampler: {error}") from None


@eqx.filter_jit
def _draw_groups(
    sampler: Sampler, key: Key[Array, ""], first: Int[Array, ""], num_groups: int
) -> Float[Array, "n dim"]:
    """Draw groups `first`, `first + 1`, ... of `GROUP` rows each, a cache-sized tile at a time."""
    groups = first + jnp.arange(num_groups)
    # Fewer than a tile, or what is left of a block after memory ran out.
    if num_groups <= TILE_GROUPS or num_groups % TILE_GROUPS:
        return _draw_tile(sampler, key, groups)
    tiles = jax.lax.map(lambda tile: _draw_tile(sampler, key, tile), groups.reshape(-1, TILE_GROUPS))
    return tiles.reshape(-1, sampler.dim)


def _draw_tile(sampler: Sampler, key: Key[Array, ""], groups: Int[Array, " groups"]) -> Float[Array, "n dim"]:
    z = jax.vmap(lambda g: sampler.latent.sample(jax.random.fold_in(key, g), GROUP))(groups)
    return jax.vmap(sampler)(z.reshape(-1, sampler.latent.dim))


@eqx.filter_jit
def _draw_uniforms(sampler: Sampler, uniforms: Float[Array, "n uniforms"]) -> Float[Array, "n dim"]:
    return jax.vmap(lambda u: sampler(sampler.latent.from_uniform(u)))(uniforms)
