"""What a check hands back: lines, a verdict, and enough of the draws to look at."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.console import Console, ConsoleOptions, RenderableType

from pushforward.trust.html import fragment
from pushforward.trust.line import Line
from pushforward.trust.terminal import render
from pushforward.trust.verdict import levels, verdict


@dataclass(frozen=True)
class Pictures:
    """Draws before and after the short chains, with their energies: what the plots are made of."""

    before: Float[np.ndarray, "n dim"]
    after: Float[np.ndarray, "n dim"]
    energy_before: Float[np.ndarray, " n"]
    energy_after: Float[np.ndarray, " n"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The answer to "can I trust it?". Print it, or ask for `as_json()` or `as_html()`."""

    target: str
    kind: str
    """What was checked: a sampler, a function, or an array."""
    num_draws: int
    num_judged: int
    """Draws that were judged: fewer than came, where they repeat or depend on each other."""
    level: float
    """The chance that an exact sampler is not trusted, shared by all tests."""
    lines: tuple[Line, ...]
    seconds: float
    pictures: Pictures | None = None

    @property
    def levels(self) -> list[str]:
        """How each line reads when all are weighed together."""
        return levels(self.lines, self.level)

    @property
    def verdict(self) -> str:
        """`trust`, `caution` or `do not trust`."""
        return verdict(self.levels)

    def __getitem__(self, name: str) -> Line:
        """Return the line of that name."""
        for line in self.lines:
            if line.name == name:
                return line
        raise KeyError(f"there is no line {name!r}; there are {', '.join(line.name for line in self.lines)}.")

    def as_json(self) -> dict[str, Any]:
        """Return everything but the pictures, as strict JSON can hold it."""
        lines = [
            {**asdict(line), "details": dict(line.details), "level": level}
            for line, level in zip(self.lines, self.levels, strict=True)
        ]
        return _strict(
            {
                "target": self.target,
                "kind": self.kind,
                "verdict": self.verdict,
                "num_draws": self.num_draws,
                "num_judged": self.num_judged,
                "level": self.level,
                "seconds": self.seconds,
                "lines": lines,
            }
        )

    def as_html(self) -> str:
        """Return a part of a page: the verdict, the lines, and the plots."""
        return fragment(self)

    def _repr_html_(self) -> str:
        return self.as_html()

    def __repr__(self) -> str:
        names = ", ".join(line.name for line in self.lines)
        return f"Report({self.verdict}: {self.num_draws:,} draws of {self.target}; print it: {names})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield from render(self)

    def __str__(self) -> str:
        console = Console(width=110, highlight=False, force_terminal=False, no_color=True)
        with console.capture() as capture:
            console.print(self)
        return capture.get().rstrip("\n")

    def dumps(self) -> str:
        """Return the JSON as text."""
        return json.dumps(self.as_json(), indent=2, allow_nan=False)


def _strict(value: Any) -> Any:
    """Return the value with NumPy's scalars as Python's, and what is not finite as `None`."""
    if isinstance(value, dict):
        return {str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
