"""Where data may be found: a folder that is given, then the environment's, then the cache."""

import os
from pathlib import Path

import numpy as np

from pushforward.atomic import replacing

VARIABLE = "PUSHFORWARD_DATA"


def cache_folder() -> Path:
    """Return the folder where downloads are kept; it is made only when there is something to keep."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pushforward" / "data"


def find(name: str, folder: str | Path | None) -> Path | None:
    """Return the file `name` of the data folder, or of the cache; `None` where a download must do.

    A folder that was asked for, by argument or by `PUSHFORWARD_DATA`, must have the file: to take other
    data in its place without a word would be no help.
    """
    asked = folder if folder is not None else os.environ.get(VARIABLE) or None
    if asked is None:
        path = cache_folder() / name
        return path if path.is_file() else None
    source = "`data`" if folder is not None else f"`{VARIABLE}`"
    if not Path(asked).is_dir():
        raise ValueError(
            f"{source} must name a folder with {name}; there is no folder {asked}. {how_to_get(name)}"
        )
    path = Path(asked) / name
    if not path.is_file():
        raise ValueError(
            f"{source} must name a folder with {name}; {asked} does not hold one. {how_to_get(name)}"
        )
    return path


def how_to_get(name: str) -> str:
    """Return what to do when the data are not there."""
    return (
        f"Leave it out to fetch the data from their public source (needs a network and `pip install "
        f"scikit-learn`; the file is kept as {name} in the cache), or put a {name} into the folder."
    )


def write_npz(path: Path, arrays: dict[str, np.ndarray], *, compressed: bool = False) -> None:
    """Write arrays by name, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        (np.savez_compressed if compressed else np.savez)(file, **arrays)  # pyright: ignore[reportArgumentType]
