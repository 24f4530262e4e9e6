"""What to say when a package of the `models` extra is not installed, and whatever else front ends share."""

from collections.abc import Iterable

import numpy as np


def first_line(error: BaseException) -> str:
    """Return an error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def listed(names: Iterable[str]) -> str:
    """Return names in quotes, the first few of them."""
    names = list(names)
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(repr(name) for name in names[:8]) + more


def check_observed(model: str, site: str, value: object) -> None:
    """Refuse data that are no numbers, and data with holes: a density of NaN is NaN everywhere."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"`model`: the data at {site!r} of model {model!r} must be an array of numbers; got "
            f"{type(value).__name__} of {array.dtype}. Convert them with `numpy.asarray(..., float)`, and "
            "code names by whole numbers."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(
            f"`model`: the data at {site!r} of model {model!r} are missing in {np.isnan(array).sum()} of "
            f"{array.size} places (NaN). Leave those out, mask them, or make them parameters of the model."
        )
