"""`check_target`: what is known of a log density before any training, as a table a person can read."""

import textwrap
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.checks import check_key
from pushforward.host import generator
from pushforward.operations import one_by_one
from pushforward.preflight.checks import checks
from pushforward.preflight.declaring import coordinate_names
from pushforward.preflight.findings import BAD, CAUTION, GOOD, Finding
from pushforward.recipe.search import find_peaks
from pushforward.recipe.table import Search
from pushforward.tables import text_table

MAX_RATIO = 1e4  # scales further apart than this are worth a word: the same target in other units is easier


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

    def __repr__(self) -> str:
        found = ", ".join(f"{line.what} {line.verdict}" for line in self.lines)
        return f"TargetReport({self.target}, {self.dim} coordinates; print it: {found})"

    def __str__(self) -> str:
        shown = [f"{self.target}, {self.dim} coordinates"]
        for line in self.lines:
            words = f"{line.what:<10}{line.verdict:<9}{line.words}"
            shown.append(textwrap.fill(words, 110, subsequent_indent=" " * 19, break_on_hyphens=False))
        if self.coordinates:
            rows = [[c.name, f"{c.place:.4g}", f"{c.scale:.3g}"] for c in self.coordinates]
            shown += ["", text_table(("coordinate", "peak at", "scale there"), rows)]
        return "\n".join(shown)


def check_target(target: Target, *, key: Key[Array, ""] | None = None) -> TargetReport:
    """Look at a target before training on it; nothing is raised but for what is no target at all.

        print(pf.check_target(target))

    Looked at are: the output's type, finite values at typical points, the gradient against finite
    differences, the cost of a call, ways to infinity along which the density does not fall, and the scale of
    each coordinate around the highest peak. `fit` itself refuses what is `bad` here.

    `key` is a typed key for the trial points; a fixed one otherwise.
    """
    key = jax.random.key(0) if key is None else key
    check_key(key)
    rng = generator(key)
    lines = list(checks(rng, target))
    coordinates: tuple[Coordinate, ...] = ()
    cheap = all(line.verdict == GOOD for line in lines if line.what == "cost")
    if cheap and all(line.verdict != BAD for line in lines):
        coordinates = _coordinates(key, one_by_one(target))
        lines.append(_scales(coordinates))
    return TargetReport(target.name, target.dim, tuple(lines), coordinates)


def _coordinates(key: Key[Array, ""], target: Target) -> tuple[Coordinate, ...]:
    try:
        peaks = find_peaks(key, target, Search(num_walks=64, strides=(200,), rounds=0))
    except ValueError:
        return ()
    widths = np.sqrt(np.sum(peaks.choleskys[0] ** 2, axis=1)).tolist()
    places = np.asarray(peaks.points[0]).tolist()
    return tuple(map(Coordinate, coordinate_names(target), places, widths))


def _scales(coordinates: tuple[Coordinate, ...]) -> Finding:
    if not coordinates:
        return Finding("scales", CAUTION, "no peak was found by climbing")
    widths = np.array([c.scale for c in coordinates])
    words = f"from {widths.min():.3g} to {widths.max():.3g} around the highest peak found"
    ratio = widths.max() / max(widths.min(), 1e-300)
    if ratio <= MAX_RATIO:
        return Finding("scales", GOOD, words)
    return Finding("scales", CAUTION, f"{words}: {ratio:.1g} times apart; other units would make it easier")
