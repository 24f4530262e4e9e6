"""Grey images with labels: MNIST, or any folder of idx or npz files whose sides are multiples of 4.

The idx format is a magic number, the sizes, the bytes; gzipped or not.
"""

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

from pushforward.arrays import read_npz
from pushforward.files import BadFileError
from reproduce.data.folders import VARIABLE, cache_folder, write_npz

UNSIGNED_BYTES = 8
MAX_AXES = 4


def read_idx(path: str | Path) -> np.ndarray:
    """Return an idx file's array of bytes, or say what is wrong with the file."""
    path = Path(path)
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                data = file.read()
        else:
            data = path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise BadFileError(f"{path} cannot be read: {error}. Fetch it again.") from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != UNSIGNED_BYTES or not 1 <= data[3] <= MAX_AXES:
        raise BadFileError(f"{path} is not an idx file of bytes: it must begin with 0, 0, 8 and its axes.")
    axes = data[3]
    sizes = tuple(int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes))
    start = 4 + 4 * axes
    if len(data) - start != math.prod(sizes):
        raise BadFileError(
            f"{path} is cut short or too long: its sizes {sizes} ask for {math.prod(sizes):,} bytes and it "
            f"holds {max(len(data) - start, 0):,}. Fetch it again."
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(sizes)


FILE = "mnist.npz"
NAMES = ("train_images", "train_labels", "test_images", "test_labels")
IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
SIDES = 8  # images are padded to a multiple of this: the networks halve a map three times

HOW_TO_GET = (
    "Put the four files of MNIST (train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "
    "t10k-labels-idx1-ubyte; gzipped or not) into a folder, or one .npz with the arrays train_images, "
    "train_labels, test_images, test_labels, and give it by `--data FOLDER` or the environment variable "
    "PUSHFORWARD_DATA. Without either, MNIST is fetched from OpenML (needs a network and `pip install "
    "scikit-learn`)."
)


class Images(NamedTuple):
    """Images as bytes, padded with zeros to sides that are multiples of 8, and their labels from 0 on."""

    train: UInt8[np.ndarray, "train height width"]
    train_labels: Int[np.ndarray, " train"]
    test: UInt8[np.ndarray, "test height width"]
    test_labels: Int[np.ndarray, " test"]

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width after padding."""
        return self.train.shape[1], self.train.shape[2]

    @property
    def classes(self) -> int:
        """How many classes the training labels have."""
        return int(self.train_labels.max()) + 1


def images(data: str | Path | None = None) -> Images:
    """Load images from a folder (`data`, else `PUSHFORWARD_DATA`, else the cache), or MNIST from OpenML.

    A folder holds MNIST's four idx files or others of the same names, or one .npz with `train_images`,
    `train_labels`, `test_images`, `test_labels`: bytes, or numbers from 0 to 1. It may also have them in a
    sub-folder `mnist`.
    """
    asked = data if data is not None else os.environ.get(VARIABLE) or None
    if asked is None:
        path = cache_folder() / FILE
        return _checked(path, _read_npz(path) if path.is_file() else _download())
    folder = Path(asked)
    if not folder.is_dir():
        source = "`data`" if data is not None else f"`{VARIABLE}`"
        raise ValueError(f"{source} must name a folder of images; there is no folder {asked}. {HOW_TO_GET}")
    for place in (folder, folder / "mnist"):
        found = _from_folder(place)
        if found is not None:
            return _checked(place, found)
    raise ValueError(f"`data` must name a folder of images; {asked} holds none. {HOW_TO_GET}")


def _from_folder(folder: Path) -> tuple[np.ndarray, ...] | None:
    paths = [next((p for p in (folder / n, folder / f"{n}.gz") if p.is_file()), None) for n in IDX]
    if all(path is not None for path in paths):
        return tuple(read_idx(path) for path in paths if path is not None)
    if any(path is not None for path in paths):
        missing = [name for name, path in zip(IDX, paths, strict=True) if path is None]
        raise ValueError(f"{folder} lacks {', '.join(missing)}. {HOW_TO_GET}")
    for path in sorted(folder.glob("*.npz")) if folder.is_dir() else ():
        try:
            held = read_npz(path)
        except BadFileError:
            continue
        if set(NAMES) <= held.keys():
            return tuple(held[name] for name in NAMES)
    return None


def _read_npz(path: Path) -> tuple[np.ndarray, ...]:
    try:
        held = read_npz(path)
        return tuple(held[name] for name in NAMES)
    except (BadFileError, KeyError) as error:
        raise BadFileError(f"{path} cannot be read as images: {error}. {HOW_TO_GET}") from None


def _checked(place: Path, arrays: tuple[np.ndarray, ...]) -> Images:
    train, train_labels, test, test_labels = arrays
    if train.ndim == 4 and train.shape[-1] == 1 and test.ndim == 4 and test.shape[-1] == 1:
        train, test = train[..., 0], test[..., 0]
    for name, pixels, labels in (("train", train, train_labels), ("test", test, test_labels)):
        if pixels.ndim != 3 or not len(pixels):
            raise BadFileError(
                f"{place}: {name} images must be grey, of shape (images, height, width); got {pixels.shape}."
            )
        if (
            labels.shape != pixels.shape[:1]
            or not np.issubdtype(labels.dtype, np.integer)
            or labels.min() < 0
        ):
            raise BadFileError(
                f"{place}: {name} labels must be one integer from 0 on for each of {len(pixels)} images; "
                f"got {labels.dtype} of shape {labels.shape}."
            )
    if train.shape[1:] != test.shape[1:]:
        raise BadFileError(
            f"{place}: all images must have one size; those to train on are {train.shape[1:]}, those to "
            f"test on {test.shape[1:]}. Crop or pad them."
        )
    if train.shape[1] % 4 or train.shape[2] % 4:
        raise BadFileError(
            f"{place}: sides of images must be multiples of 4; got {train.shape[1]} x {train.shape[2]}. "
            "Crop or pad them."
        )
    labels = (train_labels.astype(np.int64), test_labels.astype(np.int64))
    return Images(_padded(_bytes(place, train)), labels[0], _padded(_bytes(place, test)), labels[1])


def _bytes(place: Path, pixels: np.ndarray) -> np.ndarray:
    """Return pixels as bytes; what is not in range is refused, since scaling it would be a guess."""
    if pixels.dtype == np.uint8:
        return pixels
    low, high = float(pixels.min()), float(pixels.max())
    if np.issubdtype(pixels.dtype, np.floating) and low >= 0.0 and high <= 1.0:
        return np.round(255.0 * pixels).astype(np.uint8)
    if np.issubdtype(pixels.dtype, np.integer) and low >= 0 and high <= 255:
        return pixels.astype(np.uint8)
    raise BadFileError(
        f"{place}: pixels must be bytes from 0 to 255 or numbers from 0 to 1; got {pixels.dtype} from "
        f"{low:g} to {high:g}. Rescale them."
    )


def _padded(pixels: np.ndarray) -> np.ndarray:
    """Return images with sides that are multiples of 8, zeros on all sides alike."""
    margins = [(-side % SIDES) // 2 for side in pixels.shape[1:]]
    return np.pad(pixels, [(0, 0), *((m, m) for m in margins)])


def _download() -> tuple[np.ndarray, ...]:
    """Fetch MNIST by scikit-learn and keep what came."""
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise ImportError(f"MNIST is in no folder and no cache. {HOW_TO_GET}") from error
    try:
        pixels, labels = fetch_openml(
            "mnist_784", version=1, return_X_y=True, as_frame=False, data_home=str(cache_folder() / "sklearn")
        )
    except OSError as error:
        raise ValueError(f"MNIST could not be fetched ({error}). {HOW_TO_GET}") from error
    pixels, labels = np.asarray(pixels, np.uint8).reshape(-1, 28, 28), np.asarray(labels, np.uint8)
    arrays = (pixels[:60_000], labels[:60_000], pixels[60_000:], labels[60_000:])
    write_npz(cache_folder() / FILE, dict(zip(NAMES, arrays, strict=True)), compressed=True)
    return arrays
