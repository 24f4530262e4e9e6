"""Draws of a chain are worth fewer than they are: how many, and which rows to judge instead of all."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

INDEPENDENT = 1.25
"""Autocorrelation times below this are what independent draws show by chance."""

APART = 1.5
"""Rows kept are this many autocorrelation times apart, so that what is left of it is a few percent."""

WINDOW = 5.0
"""Sokal's rule: sum the autocorrelations up to five times the time they sum to."""


class Rows(NamedTuple):
    """The rows to judge."""

    draws: Float[np.ndarray, "m dim"]
    time: float
    """Integrated autocorrelation time, in rows, of the slowest coordinate or square of one."""
    stride: int


def independent_rows(draws: Float[np.ndarray, "n dim"], limit: int) -> Rows:
    """Return at most `limit` rows, evenly spaced and far enough apart to count as independent.

    The time is `1 + 2 sum_k rho_k`, of each coordinate and of its squared distance from the middle, and the
    longest of them decides. Order is all it goes by: a chain that was shuffled looks independent.
    """
    time = max(autocorrelation_time(column) for column in _columns(draws))
    stride = 1 if time <= INDEPENDENT else math.ceil(APART * time)
    kept = draws[::stride]
    if len(kept) > limit:
        kept = kept[np.linspace(0, len(kept) - 1, limit).astype(int)]
    return Rows(kept, time, stride)


def _columns(draws: np.ndarray):
    middle = np.median(draws, axis=0)
    width = 1.4826 * np.median(np.abs(draws - middle), axis=0) + 1e-30
    # Clipped, or a heavy tail hides the correlation of all the rest.
    clipped = np.clip((draws - middle) / width, -5.0, 5.0).astype(np.float64)
    for column in clipped.T:
        yield column
        yield column**2


def autocorrelation_time(series: Float[np.ndarray, " n"]) -> float:
    """Return the integrated autocorrelation time of one series, at least 1."""
    n = len(series)
    centred = series - series.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    covariance = np.fft.irfft(spectrum)[:n]
    if covariance[0] <= 0:
        return float(n)
    times = 2.0 * np.cumsum(covariance / covariance[0]) - 1.0
    enough = np.arange(n) >= WINDOW * times
    return max(1.0, float(times[np.argmax(enough)] if enough.any() else n))
