"""UCI Covertype: 581,012 patches of forest, ten measurements and 44 indicators, seven kinds of cover.

And made data of the same shape, for trying a study out.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from pushforward.arrays import read_npz
from pushforward.checks import check_count
from pushforward.files import BadFileError
from reproduce.data.folders import cache_folder, find, how_to_get, write_npz

FILE = "covertype.npz"
QUANTITIES, INDICATORS = 10, 44
CLASS_COUNTS = (211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510)
LODGEPOLE = 2  # the most common cover: the binary task is to tell it from the rest


class Covertype(NamedTuple):
    """The data as this line of work uses them: 54 features, two classes."""

    features: Float[np.ndarray, "rows features"]  # as recorded, not scaled
    labels: Int[np.ndarray, " rows"]
    """`-1` for the second kind of cover, `+1` for the rest, as in the LIBSVM file."""


def covertype(data: str | Path | None = None, *, counts: tuple[int, ...] = CLASS_COUNTS) -> Covertype:
    """Load Covertype.

    **Arguments:**

    - `data`: a folder with `covertype.npz` (arrays `X_quant`, `X_bin`, `y`). By default the folder that
        `PUSHFORWARD_DATA` names, else the cache, else scikit-learn's `fetch_covtype`, whose download is
        then kept in the cache.
    - `counts`: rows of each kind of cover, without which a file is not the data.
    """
    path = find(FILE, data)
    quantities, indicators, cover = _download(counts) if path is None else _read(path, counts)
    features = np.concatenate([quantities, indicators], axis=1, dtype=np.float32)
    return Covertype(features, np.where(cover == LODGEPOLE, -1, 1))


def _read(path: Path, counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        held = read_npz(path)
        arrays = held["X_quant"], held["X_bin"], held["y"]
    except (BadFileError, KeyError) as error:
        raise BadFileError(f"{path} is not Covertype: {error}. {how_to_get(FILE)}") from None
    _check(path, counts, *arrays)
    return arrays


def _check(
    path: Path, counts: tuple[int, ...], quantities: np.ndarray, indicators: np.ndarray, cover: np.ndarray
) -> None:
    """Refuse a file that has the right arrays and not the right rows."""
    rows = sum(counts)
    shapes = (quantities.shape, indicators.shape, cover.shape)
    if shapes != ((rows, QUANTITIES), (rows, INDICATORS), (rows,)):
        raise BadFileError(
            f"{path} is not Covertype: `X_quant`, `X_bin`, `y` must have shapes ({rows}, {QUANTITIES}), "
            f"({rows}, {INDICATORS}), ({rows},); got {shapes[0]}, {shapes[1]}, {shapes[2]}."
        )
    found = tuple(np.bincount(cover, minlength=8)[1:].tolist())
    if found != counts:
        raise BadFileError(f"{path} is not Covertype: the classes must have {counts} rows; got {found}.")


def _download(counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fetch by scikit-learn and keep what came."""
    try:
        from sklearn.datasets import fetch_covtype
    except ImportError as error:
        raise ImportError(f"Covertype is in no folder and no cache. {how_to_get(FILE)}") from error
    try:
        features, cover = fetch_covtype(return_X_y=True, data_home=str(cache_folder() / "sklearn"))
    except OSError as error:
        raise ValueError(
            f"Covertype could not be fetched ({error}). Give a folder with {FILE}: `--data FOLDER`, or the "
            "environment variable PUSHFORWARD_DATA."
        ) from error
    parts = np.split(np.asarray(features), [QUANTITIES], axis=1)
    quantities, indicators = parts[0].astype(np.int16), parts[1].astype(np.uint8)
    cover = np.asarray(cover, np.uint8)
    _check(cache_folder() / FILE, counts, quantities, indicators, cover)
    arrays = {"X_quant": quantities, "X_bin": indicators, "y": cover}
    write_npz(cache_folder() / FILE, arrays, compressed=True)
    return quantities, indicators, cover


WILDERNESS = 4
BIAS = 0.2


def stand_in(num_rows: int = 5000, seed: int = 0) -> Covertype:
    """Return ten quantities, a one-hot code of four and one of forty, and labels drawn from a logistic model.

    The codes are as uneven as Covertype's: the rarest have a few rows, so that some weights are held by
    the prior more than by the data. That is what makes its posterior more than a Gaussian.
    """
    check_count(num_rows, "num_rows", at_least=400)
    rng = np.random.default_rng(check_count(seed, "seed", at_least=0))
    weights = rng.normal(size=QUANTITIES + INDICATORS)
    quantities = np.round(rng.gamma(4.0, 60.0, (num_rows, QUANTITIES)))
    wild = _codes(rng, num_rows, WILDERNESS, steepness=2.0)
    soil = _codes(rng, num_rows, INDICATORS - WILDERNESS, steepness=6.0)
    features = np.concatenate([quantities, wild, soil], axis=1, dtype=np.float32)
    scaled = np.concatenate([(quantities - 240.0) / 240.0, wild, soil], axis=1)
    probability = 1.0 / (1.0 + np.exp(-(scaled @ weights + BIAS)))
    return Covertype(features, np.where(rng.random(num_rows) < probability, 1, -1))


def _codes(rng: np.random.Generator, num_rows: int, kinds: int, *, steepness: float) -> np.ndarray:
    """Return one-hot codes, each kind rarer than the one before and none without rows."""
    share = np.exp(-steepness * np.arange(kinds) / kinds)
    kind = rng.choice(kinds, num_rows, p=share / share.sum())
    kind[: 4 * kinds] = np.repeat(np.arange(kinds), 4)
    return np.eye(kinds)[rng.permutation(kind)]
