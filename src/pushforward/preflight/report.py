"""`check_target`: what is known of a log density before any training, as a table a person can read."""

import io
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Key
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from pushforward.base import Target
from pushforward.checks import check_key
from pushforward.operations import one_by_one
from pushforward.preflight.checks import BAD, CAUTION, GOOD, Finding, checks, trial_points
from pushforward.probing import ROWS, seconds_a_look
from pushforward.recipe.host import generator
from pushforward.recipe.search import find_peaks
from pushforward.recipe.table import Search

STYLES = {GOOD: "green", CAUTION: "yellow", BAD: "bold red"}
MAX_RATIO = 1e4
"""Scales further apart than this are worth a word: the same target in other units is easier."""

SHOWN = 40
"""Coordinates of a table that is printed."""


@dataclass(frozen=True)
class Coordinate:
    """Where the highest peak found lies in one coordinate, and how wide it is there."""

    name: str
    place: float
    scale: float


@dataclass(frozen=True)
class TargetReport:
    """What `check_target` found; `print` it. `ok` is whether `fit` would accept the target."""

    target: str
    dim: int
    lines: tuple[Finding, ...]
    coordinates: tuple[Coordinate, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is bad."""
        return all(line.verdict != BAD for line in self.lines)

    def __rich__(self) -> Group:
        """Render for a terminal."""
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for style in ("bold cyan", "", ""):
            table.add_column(style=style, overflow="fold")
        for line in self.lines:
            table.add_row(Text(line.what), Text(line.verdict, STYLES[line.verdict]), Text(line.words))
        parts = [Text(f"{self.target}, {self.dim} coordinates"), table]
        if self.coordinates:
            scales = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
            for title in ("coordinate", "peak at", "scale there"):
                scales.add_column(title, justify="left" if title == "coordinate" else "right")
            for c in self.coordinates[:SHOWN]:
                scales.add_row(Text(c.name), f"{c.place:.4g}", f"{c.scale:.3g}")
            if len(self.coordinates) > SHOWN:
                scales.add_row(Text(f"... and {len(self.coordinates) - SHOWN} more"), "", "")
            parts += [Text(""), scales]
        return Group(*parts)

    def __repr__(self) -> str:
        found = ", ".join(f"{line.what} {line.verdict}" for line in self.lines)
        return f"TargetReport({self.target}, {self.dim} coordinates; print it: {found})"

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=110, no_color=True, highlight=False)
        console.print(self)
        return console.file.getvalue().rstrip()  # pyright: ignore[reportAttributeAccessIssue]


def check_target(target: Target, *, key: Key[Array, ""] | None = None) -> TargetReport:
    """Look at a target before training on it; nothing is raised but for what is no target at all.

        print(pf.check_target(target))

    Looked at are: the output's type, finite values at typical points, the gradient against finite
    differences, the cost of a call, ways to infinity along which the density does not fall, and the scale of
    each coordinate around the highest peak. `fit` itself refuses what is `bad` here.

    **Arguments:**

    - `target`: the target.
    - `key`: a typed key for the trial points; a fixed one otherwise.
    """
    key = jax.random.key(0) if key is None else key
    check_key(key)
    rng = generator(key)
    lines = list(checks(rng, target))
    coordinates: tuple[Coordinate, ...] = ()
    if lines[0].verdict != BAD:
        seen = one_by_one(target)
        lines.append(_cost(seen, trial_points(rng, target.dim)[1]))
        if all(line.verdict != BAD for line in lines):
            coordinates = _coordinates(key, seen)
            lines.append(_scales(coordinates))
    return TargetReport(target.name, target.dim, tuple(lines), coordinates)


def _cost(target: Target, x: np.ndarray) -> Finding:
    each = seconds_a_look(target, x)
    words = f"{1e6 * each:.3g} microseconds a point for value and gradient, {ROWS} at once"
    return Finding("cost", CAUTION if each > 0.01 else GOOD, words)


def _coordinates(key: Key[Array, ""], target: Target) -> tuple[Coordinate, ...]:
    try:
        peaks = find_peaks(key, target, Search(num_walks=64, strides=(200,)))
    except ValueError:
        return ()
    names = target.parameters.coordinate_names() if target.parameters else None
    best = peaks.choleskys[0]
    widths = np.sqrt(np.sum(best**2, axis=1))
    return tuple(
        Coordinate(names[i] if names else f"x[{i}]", float(peaks.points[0][i]), float(widths[i]))
        for i in range(target.dim)
    )


def _scales(coordinates: tuple[Coordinate, ...]) -> Finding:
    if not coordinates:
        return Finding("scales", CAUTION, "no peak was found by climbing")
    widths = np.array([c.scale for c in coordinates])
    words = f"from {widths.min():.3g} to {widths.max():.3g} around the highest peak found"
    ratio = widths.max() / max(widths.min(), 1e-300)
    if ratio <= MAX_RATIO:
        return Finding("scales", GOOD, words)
    return Finding("scales", CAUTION, f"{words}: {ratio:.1g} times apart; other units would make it easier")
