"""Kinds of images: clusters of the energy's own draws, found without labels.

A sampler that is led by a critic or by moments has shares of digits of its own, not those of the energy's
draws, and no gradient mends them: what lies between two kinds of images is no image. So the kind is
drawn first, with the share that it has among the energy's draws, and the critic is told which it looks at.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt8
from scipy.cluster.vq import kmeans2

from pushforward.arrays import read_npz
from pushforward.files import BadFileError
from reproduce.data.folders import write_npz
from reproduce.studies.ebm.moments import looks
from reproduce.studies.ebm.noise import Batch, Image

STEPS, TRIES = 25, 4
"""Of k-means: it may end with two kinds in one cluster, so the best of some tries is taken."""


class Teacher(NamedTuple):
    """Draws of the energy, as bytes, and of which kind each is."""

    images: UInt8[Array, "images height width"]
    kinds: Int[Array, " images"]

    def batch(self, key: Key[Array, ""], n: int) -> tuple[Batch, Int[Array, " n"]]:
        """Return `n` of them chosen with replacement, as numbers from 0 to 1."""
        chosen = jax.random.randint(key, (n,), 0, self.images.shape[0])
        return self.images[chosen].astype(jnp.float32)[..., None] / 255.0, self.kinds[chosen]

    def shares(self, count: int) -> Float[np.ndarray, " kinds"]:
        """Return the share of each of `count` kinds; those found in no image have none."""
        return np.bincount(np.asarray(self.kinds), minlength=count) / len(self.kinds)


def sorted_into_kinds(
    key: Key[Array, ""],
    features: Callable[[Image], Float[Array, " features"]],
    images: UInt8[np.ndarray, "n height width"],
    count: int,
    sigma: float,
    path: Path,
) -> Teacher:
    """Sort draws of the energy into at most `count` kinds: clusters of features seen in noise `sigma`.

    They are kept in the file `path`, since a generator and a critic know kinds by their numbers, and clusters
    found again on another machine may have others.
    """
    if path.exists():
        kept = read_npz(path)["kinds"]
        if kept.shape != images.shape[:1]:
            raise BadFileError(f"{path} is of {len(kept)} images, not of {len(images)}. Use `--fresh`.")
        return Teacher(jax.device_put(images), jax.device_put(kept))
    key_noise, key_means = jax.random.split(key)
    points = looks(key_noise, features, images, (sigma, sigma)).astype(np.float64)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key_means)))
    found = [_clusters(rng, points, count) for _ in range(TRIES)]
    kinds = min(found, key=lambda one: one[0])[1].astype(np.int32)
    write_npz(path, {"kinds": kinds})
    return Teacher(jax.device_put(images), jax.device_put(kinds))


def _clusters(
    rng: np.random.Generator, points: Float[np.ndarray, "n features"], count: int
) -> tuple[float, Int[np.ndarray, " n"]]:
    """Return how far points are from their clusters' centres, and the clusters."""
    with warnings.catch_warnings():
        # A kind may end up with no image; its share is then nought.
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        centres, kinds = kmeans2(points, count, iter=STEPS, minit="++", rng=rng)
    return float(np.sum((points - centres[kinds]) ** 2)), kinds
