"""Mode census: basins that the sampler misses, and basins that it gives the wrong mass."""

import numpy as np
from scipy.special import stdtr

from pushforward.trust.census import Census
from pushforward.trust.line import Line
from pushforward.trust.settings import LIMITS

NAME, TITLE = "modes", "Mode census"


def modes_line(draws: np.ndarray, census: Census, moved: tuple[np.ndarray, np.ndarray] | None = None) -> Line:
    """Return the test that every basin holds the draws that its mass deserves.

    `moved` are draws before and after short chains. Basins between which these cross freely count as one:
    there is no valley between them, though a straight line has one where a ridge is bent.

    The mass `w` of a basin is the mean over repeats of tempered particles; its error is the larger of the
    basin's own spread over repeats and what the spread of all basins together makes likely. The excess of
    `|share - w|` over a tenth of `min(w, 1 - w)`, in standard errors, follows at most Student's t.
    """
    basins, weights = census.basins, census.weights
    if weights is None:
        return _without_weights(census, basins.count)
    first = joined_basins(weights.shape[1], *map(basins.of, moved)) if moved else np.arange(weights.shape[1])
    heads, group = np.unique(first, return_inverse=True)
    if len(heads) == 1:
        return _without_weights(census, 1)
    weights = np.stack([weights[:, group == k].sum(axis=1) for k in range(len(heads))], axis=1)
    repeats, count = weights.shape
    w = weights.mean(axis=0)
    shares = np.bincount(group[basins.of(draws)], minlength=count) / len(draws)
    error = _errors(weights, shares, len(draws))
    excess = np.maximum(np.abs(shares - w) - LIMITS.mass_error * np.minimum(w, 1.0 - w), 0.0) / error
    # Two basins say one thing: what one lacks, the other has.
    tests, freedom = count - 1, (repeats - 1) * (count - 1)
    p_value = min(1.0, 2.0 * tests * float(stdtr(freedom, -excess.max())))
    missed = np.flatnonzero((shares < LIMITS.missed * w) & (excess > 2.0))
    wrong = 0.5 * float(np.abs(shares - w).sum())
    worst = int(np.argmax(excess)) if excess.any() else int(np.argmax(np.abs(shares - w)))
    words = (
        f"{count} basins; mass in the wrong one: {wrong:.1%}. Farthest off: the basin at "
        f"{_place(census, int(heads[worst]))} has {shares[worst]:.1%} of the draws and {w[worst]:.1%} "
        f"+- {error[worst]:.1%} of the mass."
    )
    if len(missed):
        words += f" Missed: {len(missed)}, with {w[missed].sum():.1%} of the mass."
    return Line(
        name=NAME,
        title=TITLE,
        statistic=float(excess.max()),
        measure=f"largest excess of {count} basins, in standard errors",
        null=f"at most t with {freedom} degrees of freedom, Bonferroni; {LIMITS.mass_error:.0%} tolerated",
        p_value=p_value,
        grave=wrong > LIMITS.grave_mass or len(missed) > 0,
        found=words,
        advice="Modes are missed or weighed wrongly, which short chains cannot mend: train again.",
        details={
            "basins": [
                {"at": _point(census, int(head)).tolist(), "mass": mass, "error": off, "share": share}
                for head, mass, off, share in zip(heads, w, error, shares, strict=True)
            ],
            "wrong_mass": wrong,
            "log_z": census.log_z.mean() if census.log_z is not None else None,
        },
    )


def _errors(weights: np.ndarray, shares: np.ndarray, num_draws: int) -> np.ndarray:
    """Return standard errors of the differences between masses and shares of draws."""
    w = weights.mean(axis=0)
    binomial = np.maximum(w * (1.0 - w), 1e-12)
    own = weights.var(axis=0, ddof=1) / len(weights)
    pooled = np.sum(own) / np.sum(binomial) * binomial
    both = np.maximum(shares * (1.0 - shares), binomial) / num_draws
    return np.sqrt(np.maximum(own, pooled) + both)


def joined_basins(count: int, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return for each basin the first of those that chains reach from it without a valley on the way."""
    flow = np.zeros((count, count))
    np.add.at(flow, (before, after), 1.0)
    here = np.bincount(before, minlength=count)
    least = np.maximum(LIMITS.crossing * np.minimum.outer(here, here), LIMITS.crossings)
    reached = np.linalg.matrix_power((flow + flow.T > 2.0 * least) | np.eye(count, dtype=bool), count)
    return np.argmax(reached, axis=1)


def _without_weights(census: Census, count: int) -> Line:
    found = f"At least {count} basins: too many to weigh them one by one."
    if count == 1:
        found = f"Walks uphill found one basin, at {_place(census, 0)}."
    return Line(
        name=NAME,
        title=TITLE,
        statistic=float(count),
        measure="basins found",
        null="none: there is nothing to compare",
        found=found,
        advice="A mode too narrow for the walks stays unseen; if you know of one, start chains there.",
        details={"at_least": count},
    )


def _point(census: Census, basin: int) -> np.ndarray:
    return census.basins.peaks.points[np.argmax(census.basins.group == basin)]


def _place(census: Census, basin: int) -> str:
    point = _point(census, basin)
    shown = ", ".join(f"{value:.3g}" for value in point[:4])
    return f"({shown}{', ...' if len(point) > 4 else ''})"
