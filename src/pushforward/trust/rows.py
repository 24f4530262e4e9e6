"""Which draws can be judged: those that a density can have made, each once, and far apart in a chain."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import pdtrc

from pushforward.base import Target
from pushforward.host import heights
from pushforward.trust.coordinates import TILE
from pushforward.trust.line import Line
from pushforward.trust.settings import LIMITS


def usable_rows(draws: Float[np.ndarray, "n dim"], target: Target) -> Bool[np.ndarray, " n"]:
    """Return which rows are finite and have a finite log density."""
    finite = np.all(np.isfinite(draws), axis=1)
    return finite & np.isfinite(heights(target, np.where(finite[:, None], draws, 0.0), TILE))


def support_line(draws: Float[np.ndarray, "n dim"], usable: Bool[np.ndarray, " n"]) -> Line:
    """Return the line on draws that no density could have made, or that are all alike in a coordinate."""
    n, infinite = len(draws), int(np.sum(~np.isfinite(draws).all(axis=1)))
    outside = int(np.sum(~usable)) - infinite
    constant = _constant(draws[usable])
    found = f"{infinite:,} of {n:,} draws are not finite, {outside:,} have no density."
    if len(constant):
        found += f" Coordinate(s) {constant[:5].tolist()} never change."
    return Line(
        name="support",
        title="Finite, and inside the support",
        statistic=float(np.mean(~usable)),
        measure="share of impossible draws",
        null="none are allowed",
        breached=bool((~usable).any() or len(constant)),
        grave=True,
        found=found,
        advice="The sampler has diverged, or leaves the support: transform limits to the real line.",
        details={"not_finite": infinite, "no_density": outside, "constant": constant.tolist()},
    )


def _constant(rows: np.ndarray) -> np.ndarray:
    if not len(rows):
        return np.arange(rows.shape[1])
    # A robust width of zero: more than half of the draws share one value.
    low, high = np.quantile(rows, [0.1587, 0.8413], axis=0)
    return np.flatnonzero(high <= low)


class Repeats(NamedTuple):
    """Which draws are the `first` of their kind, and how many repeat an earlier one.

    Some are `rejections`, repeats of the row just before, as a chain makes them; no chain explains the `bad`.
    """

    first: Bool[np.ndarray, " n"]
    bad: int
    rejections: int


def find_repeats(draws: Float[np.ndarray, "n dim"]) -> Repeats:
    """Return the rows that repeat an earlier one, and whether a chain's rejections explain them.

    A chain that rejects stays where it is, for one step or for several: having stayed makes staying again
    no less likely. Copies of draws come in fixed numbers, so that a row and its copy are seldom followed
    by a third.
    """
    label = _labels(draws)
    n = len(label)
    first = np.zeros(n, bool)
    first[np.unique(label, return_index=True)[1]] = True
    stays = np.append(False, label[1:] == label[:-1])
    far = int(np.sum(~first & ~stays))
    share, again = stays[1:].mean(), stays[1:-1].sum()
    both = np.sum(stays[1:-1] & stays[2:])
    chain = again > 0 and both >= 0.5 * share * again
    return Repeats(first, far + (0 if chain else int(stays.sum())), int(stays.sum()) if chain else 0)


def duplicates_line(draws: np.ndarray, spare: np.ndarray | None, repeats: Repeats) -> Line:
    """Return the line: the share of repeats, and whether another key gives other draws."""
    n, dim = draws.shape
    chance = LIMITS.repeats + (n * 2.0**-22 if dim == 1 else 0.0)
    seen = {row.tobytes() for row in draws}
    again = 0 if spare is None else sum(row.tobytes() in seen for row in spare)
    worst = max(repeats.bad, again)
    share = worst / n
    found = f"{repeats.bad:,} of {n:,} draws repeat another."
    if repeats.rejections:
        found += f" {repeats.rejections:,} repeat the one before, as a chain does that rejects."
    if again > chance * n:
        found += f" {again:,} draws made with another key were seen before: the key is not used."
    return Line(
        name="duplicates",
        title="Repeated draws",
        statistic=share,
        measure="share of repeats",
        null=f"Poisson with mean {chance:.2%} of the draws",
        p_value=float(pdtrc(worst - 1, chance * n)) if worst else 1.0,
        grave=share > LIMITS.grave_repeats,
        found=found,
        advice="Count each draw once: averages over copies look more certain than they are.",
        details={"repeats": repeats.bad, "rejections": repeats.rejections, "shared_with_other_key": again},
    )


def _labels(draws: np.ndarray) -> Int[np.ndarray, " n"]:
    """Return a number for each row that equal rows, and all but equal ones, share."""
    # On a line, neighbours are near each other by chance: only equals count.
    if draws.shape[1] > 1:
        middle, width = _robust(draws)
        draws = np.round((draws.astype(np.float64) - middle) / width / LIMITS.same)
    return np.unique(draws, axis=0, return_inverse=True)[1].reshape(-1)


def _robust(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle and the width of each coordinate, whatever its tails."""
    middle = np.median(draws, axis=0)
    return middle, 1.4826 * np.median(np.abs(draws - middle), axis=0) + 1e-30


class Rows(NamedTuple):
    """The rows to judge."""

    draws: Float[np.ndarray, "m dim"]
    time: float  # integrated autocorrelation time, in rows, of the slowest coordinate or square of one
    stride: int


def independent_rows(draws: Float[np.ndarray, "n dim"], limit: int) -> Rows:
    """Return at most `limit` rows, evenly spaced and far enough apart to count as independent.

    The time is `1 + 2 sum_k rho_k`, of each coordinate and of its squared distance from the middle, and the
    longest of them decides. Order is all it goes by: a chain that was shuffled looks independent.
    """
    middle, width = _robust(draws)
    # Clipped, or a heavy tail hides the correlation of all the rest.
    clipped = np.clip((draws - middle) / width, -5.0, 5.0).astype(np.float64)
    time = max(autocorrelation_time(each) for column in clipped.T for each in (column, column**2))
    stride = 1 if time <= LIMITS.independent else math.ceil(LIMITS.apart * time)
    kept = draws[::stride]
    if len(kept) > limit:
        kept = kept[np.linspace(0, len(kept) - 1, limit).astype(int)]
    return Rows(kept, time, stride)


def autocorrelation_time(series: Float[np.ndarray, " n"]) -> float:
    """Return the integrated autocorrelation time of one series, at least 1."""
    n = len(series)
    centred = series - series.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    covariance = np.fft.irfft(spectrum)[:n]
    if covariance[0] <= 0:
        return float(n)
    times = 2.0 * np.cumsum(covariance / covariance[0]) - 1.0
    enough = np.arange(n) >= LIMITS.window * times
    return max(1.0, float(times[np.argmax(enough)] if enough.any() else n))


def dependence_line(n: int, rows: Rows) -> Line:
    """Return the line on draws of a chain, which are worth fewer than they are."""
    worth = n / max(rows.time, 1.0)
    return Line(
        name="dependence",
        title="Draws depend on each other",
        statistic=rows.time,
        measure="autocorrelation time, in draws",
        null=f"1 for independent draws, at most {LIMITS.independent} by chance",
        breached=len(rows.draws) < LIMITS.least_draws,
        found=f"{n:,} draws are worth {worth:,.0f}; every {rows.stride}th was judged.",
        advice="Too few draws to tell much: run the chain longer.",
        details={"time": rows.time, "effective": worth, "stride": rows.stride},
    )
