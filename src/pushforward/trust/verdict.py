"""From lines to a verdict: which lines are flagged when all share one error rate, and what that means."""

from collections.abc import Sequence

from pushforward.trust.line import BAD, CAUTION, NOTE, OK, Line

TRUST = "trust"
VERDICTS = (TRUST, CAUTION, BAD)


def levels(lines: Sequence[Line], level: float) -> list[str]:
    """Return how each line reads: `ok`, `caution`, `do not trust`, or `note` for what is not a test.

    Tests share `level` by Holm's rule: the smallest p-value is held against `level / m`, the next against
    `level / (m - 1)`, until one passes. So an exact sampler is flagged by any of them with a chance of at
    most `level`, however the lines depend on each other.
    """
    tests = sorted((line.p_value, k) for k, line in enumerate(lines) if line.p_value is not None)
    flagged = set()
    for rank, (p_value, k) in enumerate(tests):
        if p_value > level / (len(tests) - rank):
            break
        flagged.add(k)
    flagged |= {k for k, line in enumerate(lines) if line.breached}
    return [_level(line, flagged=k in flagged) for k, line in enumerate(lines)]


def _level(line: Line, *, flagged: bool) -> str:
    if flagged:
        return BAD if line.grave else CAUTION
    return NOTE if line.p_value is None and line.breached is None else OK


def verdict(levels: Sequence[str]) -> str:
    """Return the verdict: the worst that any line says."""
    return BAD if BAD in levels else CAUTION if CAUTION in levels else TRUST
