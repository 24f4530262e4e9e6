"""A sampler in NumPy: the same map as JAX's, latents of its own."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pushforward.checks import check_count
from pushforward.machine import cores
from pushforward.runtime.frame import Frame
from pushforward.runtime.latents import Law
from pushforward.runtime.networks import Network, Scratch

if TYPE_CHECKING:
    from pushforward.parameters import Parameters

TILE = 2048  # rows that pass the network at once: two 64-wide layers of them stay in a core's cache
MIN_TILES = 4  # fewer are not worth a thread

FIRST, GROUP = 1024, 16 * TILE
"""Latents are drawn in groups of fixed sizes, a small one first: so the first draws do not depend on how many
follow, a single draw costs little, and the many components of a mixture are each visited seldom."""


class Sampler:
    """`x = frame(network(z))`, `z` drawn from `latent`; threads may share one.

    `about` is the sampler's story, and `parameters` what its coordinates stand for, if the target said so.
    """

    def __init__(
        self,
        latent: Law,
        network: Network,
        frame: Frame,
        about: dict[str, Any] | None = None,
        parameters: "Parameters | None" = None,
    ):
        """Join the parts, all in the precision of the frame."""
        sizes = (latent.dim, network.in_size, network.out_size, frame.dim)
        if sizes[0] != sizes[1] or sizes[2] != sizes[3] or min(sizes) < 1:
            raise ValueError(
                f"latent ({sizes[0]}), network ({sizes[1]} -> {sizes[2]}), frame ({sizes[3]}) must fit."
            )
        if parameters is not None and parameters.dim != frame.dim:
            raise ValueError(f"parameters ({parameters.dim}) and frame ({frame.dim}) must fit.")
        self.dtype = np.dtype(frame.centre.dtype)
        self.latent: Law = latent.cast(self.dtype)
        self.network, self.frame = network.cast(self.dtype), frame.cast(self.dtype)
        self.about, self.parameters = {} if about is None else about, parameters
        self.latent_dim, self.dim = latent.dim, frame.dim

    def __repr__(self) -> str:
        return f"Sampler({type(self.latent).__name__}({self.latent_dim}) -> {self.dim}, NumPy)"

    def __call__(self, latents: np.ndarray) -> np.ndarray:
        """Map latents, one in each row, to draws: what JAX makes of them, to rounding."""
        latents = np.asarray(latents)
        if latents.ndim != 2 or latents.shape[1] != self.latent_dim or latents.dtype.kind not in "fiu":
            raise ValueError(
                f"`latents` must be numbers of shape (n, {self.latent_dim}), one latent in each row; got "
                f"{latents.dtype} of shape {latents.shape}. One latent is `latents[None]`."
            )
        latents = np.ascontiguousarray(latents, self.dtype)
        out = np.empty((len(latents), self.dim), self.dtype)
        starts = range(0, len(latents), TILE)
        workers = min(cores(), len(starts) // MIN_TILES) if self.network.narrow else 1
        if workers <= 1:
            self._map(latents, out, starts)
            return out
        from concurrent.futures import ThreadPoolExecutor  # only whoever has much to do should wait for it

        with ThreadPoolExecutor(workers) as pool:
            # NumPy lets go of the interpreter while it computes. `list` waits for all, and for their errors.
            list(pool.map(lambda first: self._map(latents, out, starts[first::workers]), range(workers)))
        return out

    def sample(self, rng: np.random.Generator | int, num_samples: int) -> np.ndarray:
        """Draw `num_samples` points, of shape `(num_samples, dim)`: unconstrained coordinates, as in JAX.

        The same seed gives the same draws, the first of which do not depend on how many follow. A
        `numpy.random.Generator` moves on.
        """
        num_samples = check_count(num_samples, "num_samples")
        out, start = np.empty((num_samples, self.dim), self.dtype), 0
        for block in self.stream(rng, num_samples):
            out[start : start + len(block)] = block
            start += len(block)
        return out

    def draws(self, rng: np.random.Generator | int, num_samples: int) -> dict[str, np.ndarray]:
        """Draw `num_samples` named values within their constraints; `{"x": ...}` where nothing is named."""
        x = self.sample(rng, num_samples)
        return {"x": x} if self.parameters is None else self.parameters.constrain(x)

    def stream(self, rng: np.random.Generator | int, num_samples: int) -> Iterator[np.ndarray]:
        """Yield the rows of `sample(rng, num_samples)` block by block, in bounded memory."""
        # Checked here and not in the generator, whose body waits for the first block to be asked for.
        return self._blocks(_generator(rng), check_count(num_samples, "num_samples"))

    def _blocks(self, rng: np.random.Generator, remaining: int) -> Iterator[np.ndarray]:
        rows = FIRST
        while remaining > 0:
            latents = self.latent.sample(rng, rows, self.dtype)
            yield self(latents[:remaining])
            remaining, rows = remaining - rows, GROUP

    def _map(self, latents: np.ndarray, out: np.ndarray, starts: Iterable[int]) -> None:
        """Map the tiles that begin at `starts`."""
        scratch = Scratch(self.dtype)
        # As in JAX, what overflows is infinite and not an error: exp(-h) of a silu may, and means zero.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for start in starts:
                tile = latents[start : start + TILE]
                inside = scratch.array("frame", len(tile), self.dim)
                self.network(tile, inside, scratch)
                self.frame(inside, out[start : start + TILE])


def _generator(rng: np.random.Generator | int) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise TypeError(
        f"`rng` must be a seed of at least 0 or a `numpy.random.Generator`; got {rng!r:.80}. JAX's keys do "
        "not serve here: write `numpy.random.default_rng(0)`."
    )
