"""Repeated draws: a sampler of a density never draws the same point twice."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from pushforward.trust.line import Line

BY_CHANCE = 1e-3
"""Share of repeats that is let pass: single precision on a line has some, and they do no harm."""

NEAR = 1e-5
"""Draws closer than this, in robust standard deviations of every coordinate, count as one."""

GRAVE = 0.05


class Repeats(NamedTuple):
    """Which draws repeat an earlier one."""

    first: np.ndarray
    """Mask of the rows that are the first of their kind."""
    bad: int
    """Repeats that no Markov chain explains."""
    rejections: int
    """Repeats of the row just before, as a chain makes them when it rejects."""


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
    chance = BY_CHANCE + (n * 2.0**-22 if dim == 1 else 0.0)
    again = 0 if spare is None else _shared(draws, spare)
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
        p_value=float(stats.poisson.sf(worst - 1, chance * n)) if worst else 1.0,
        grave=share > GRAVE,
        found=found,
        advice="Count each draw once: averages over copies look more certain than they are.",
        details={"repeats": repeats.bad, "rejections": repeats.rejections, "shared_with_other_key": again},
    )


def _labels(draws: np.ndarray) -> Int[np.ndarray, " n"]:
    """Return a number for each row that equal rows, and all but equal ones, share."""
    if draws.shape[1] == 1:
        # On a line, neighbours are near each other by chance: only equals count.
        return np.unique(draws[:, 0], return_inverse=True)[1]
    middle = np.median(draws, axis=0)
    width = 1.4826 * np.median(np.abs(draws - middle), axis=0) + 1e-30
    grid = np.round((draws.astype(np.float64) - middle) / width / NEAR)
    # Whole numbers beyond 2^53 do not exist apart; rows so far out are compared as they are.
    return np.unique(grid, axis=0, return_inverse=True)[1].reshape(-1)


def _shared(draws: np.ndarray, spare: np.ndarray) -> int:
    rows = {row.tobytes() for row in np.ascontiguousarray(draws)}
    return sum(row.tobytes() in rows for row in np.ascontiguousarray(spare))
