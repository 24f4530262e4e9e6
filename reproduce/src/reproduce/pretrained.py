"""Samplers that come with the package: an energy-based model of MNIST and one-shot samplers of it.

The weights are `weights/mnist.safetensors`, made by `pushforward study ebm --preset cpu --data FOLDER` and
taken from its folder of results by `ship`.
"""

from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Key, UInt8

from pushforward.checks import check_choice, check_count
from pushforward.files import dump, load
from reproduce.images import DistanceEnergy, Generator, UNet, images_of
from reproduce.images.layers import Conv, Dense, Norm
from reproduce.images.unet import Block
from reproduce.targets import ImageEnergy

WEIGHTS = Path(__file__).parent / "weights" / "mnist.safetensors"
CLASSES = {c.__name__: c for c in (DistanceEnergy, Generator, UNet, Block, Conv, Dense, Norm)}
NAMES = {"mnist": "kl", "mnist-fisher": "fisher"}
"""What a sampler is called on the command line, and the method that trained it."""

PIECE = 256


class Mnist(NamedTuple):
    """A model of MNIST's digits, 32 x 32 pixels from 0 to 1, and samplers of it."""

    target: ImageEnergy
    samplers: dict[str, Generator]  # by the method that trained them: `kl`, `fisher`
    about: dict[str, Any]


def mnist(path: str | Path = WEIGHTS) -> Mnist:
    """Load the model and its samplers."""
    parts, about = load(path, CLASSES)
    shape = (int(about["height"]), int(about["width"]))
    target = ImageEnergy(parts.pop("energy"), shape, float(about["sigma_min"]), "mnist")
    return Mnist(target, parts, about)


def ship(
    path: str | Path, energy: DistanceEnergy, samplers: dict[str, Generator], about: dict[str, Any]
) -> None:
    """Write what `mnist` loads."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    dump(path, {"energy": energy, **samplers}, about)


def draw(key: Key[Array, ""], sampler: Generator, num_samples: int) -> UInt8[np.ndarray, "n height width"]:
    """Return draws as images of bytes; the first do not depend on how many follow."""
    parts = []
    for i in range(-(-check_count(num_samples, "num_samples") // PIECE)):
        z = jax.random.normal(jax.random.fold_in(key, i), (PIECE, sampler.latent))
        pixels = np.asarray(_images(sampler, z))[..., 0]
        parts.append(np.round(255.0 * pixels).astype(np.uint8))
    return np.concatenate(parts)[:num_samples]


_images = eqx.filter_jit(images_of)


def named(name: str) -> Generator:
    """Return the sampler of a name on the command line."""
    return mnist().samplers[NAMES[check_choice(name, "name", NAMES)]]


def grid(
    images: UInt8[np.ndarray, "n height width"], columns: int | None = None
) -> UInt8[np.ndarray, "tall wide"]:
    """Return images side by side as one, in a square or in `columns`; what is left over stays black."""
    n, height, width = images.shape
    across = columns or int(np.ceil(np.sqrt(n)))
    down = -(-n // across)
    filled = np.zeros((down * across, height, width), np.uint8)
    filled[:n] = images
    return filled.reshape(down, across, height, width).swapaxes(1, 2).reshape(down * height, across * width)
