"""Lines of evidence: a number each, what it would be were the sampler right, and the verdict of them all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pushforward.trust.settings import LIMITS

OK, CAUTION, BAD, NOTE = "ok", "caution", "do not trust", "note"
"""How a line reads once all lines are weighed together; a note takes no part in the verdict."""

TRUST = "trust"
VERDICTS = (TRUST, CAUTION, BAD)


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one way of looking at the draws has found.

    A line with a `p_value` is a test and shares the error rate of the whole with the others. One with
    `breached` instead is held against a fixed tolerance. One with neither only tells.
    """

    name: str
    """A word to ask for it by."""
    title: str
    statistic: float
    measure: str
    """What the statistic is, in words: `largest |z| of 14`."""
    null: str
    """Its law for an exact sampler, or the tolerance it is held against."""
    p_value: float | None = None
    breached: bool | None = None
    tested: float = 1.0
    """The share of its statistics that could be tested at all; what is not tested is not ok."""
    grave: bool = False
    """Whether, if the line is flagged, it is more than a blemish."""
    found: str
    """One sentence: what was seen."""
    advice: str
    """What to do if it is flagged."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Figures behind the sentence: JSON values."""

    def __post_init__(self):
        if self.p_value is not None and not 0.0 <= self.p_value <= 1.0:
            raise ValueError(f"`p_value` must lie in [0, 1]; got {self.p_value} in line {self.name!r}.")
        if self.p_value is not None and self.breached is not None:
            raise ValueError(f"line {self.name!r} must have a `p_value` or be `breached`, not both.")

    def level(self, *, flagged: bool) -> str:
        """Return how the line reads, once all lines together say whether it is flagged."""
        if flagged:
            return BAD if self.grave else CAUTION
        if self.tested < LIMITS.tested:
            return CAUTION
        return NOTE if self.p_value is None and self.breached is None else OK

    @property
    def told(self) -> str:
        """What was found, and how much of it could be tested where that is not all."""
        if self.tested >= LIMITS.tested:
            return self.found
        return f"Not tested: only {self.tested:.0%} of what this line looks at could be. {self.found}"

    @property
    def p_words(self) -> str:
        """The p-value, or a dash where there is none."""
        if self.p_value is None:
            return "-"
        return f"{self.p_value:.2g}" if self.p_value >= 1e-4 else "< 1e-4"


def levels(lines: Sequence[Line], level: float) -> list[str]:
    """Return how each line reads: `ok`, `caution`, `do not trust`, or `note` for what is not a test.

    Tests share `level` by Holm's rule: the smallest p-value is held against `level / m`, the next against
    `level / (m - 1)`, until one passes. So an exact sampler is flagged by any of them with a chance of at
    most `level`, however the lines depend on each other.
    """
    tests = sorted((line.p_value, k) for k, line in enumerate(lines) if line.p_value is not None)
    flagged = {k for k, line in enumerate(lines) if line.breached}
    for rank, (p_value, k) in enumerate(tests):
        if p_value > level / (len(tests) - rank):
            break
        flagged.add(k)
    return [line.level(flagged=k in flagged) for k, line in enumerate(lines)]


def verdict(levels: Sequence[str]) -> str:
    """Return the verdict: the worst that any line says."""
    return next((word for word in (BAD, CAUTION) if word in levels), TRUST)
