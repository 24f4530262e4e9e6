"""One line of evidence: a number, what it would be were the sampler right, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OK, CAUTION, BAD, NOTE = "ok", "caution", "do not trust", "note"
"""How a line reads once all lines are weighed together; a note takes no part in the verdict."""


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
