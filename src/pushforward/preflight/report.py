"""`check_target`: what is known of a log density before any training, as a table a person can read."""

import io
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from pushforward.base import Target
from pushforward.checks import check_key
from pushforward.one_by_one import one_by_one
from pushforward.preflight.properness import NOT_FALLING, find_escapes
from pushforward.preflight.requirements import (
    BROKEN,
    check_is_target,
    check_output,
    check_values,
    trial_points,
)
from pushforward.probing import ROWS, check_gradient, evaluate, seconds_a_look
from pushforward.recipe.search import find_peaks
from pushforward.recipe.table import Search

GOOD, CAUTION, BAD = "good", "caution", "bad"
STYLES = {GOOD: "green", CAUTION: "yellow", BAD: "bold red"}
MAX_RATIO = 1e4
"""Scales further apart than this are worth a word: the same target in other units is easier."""


@dataclass(frozen=True)
class Line:
    """One thing that was looked at."""

    what: str
    verdict: str
    words: str


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
    lines: tuple[Line, ...]
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
            for c in self.coordinates[:40]:
                scales.add_row(Text(c.name), f"{c.place:.4g}", f"{c.scale:.3g}")
            if len(self.coordinates) > 40:
                scales.add_row(Text(f"... and {len(self.coordinates) - 40} more"), "", "")
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
    check_is_target(target)
    key = jax.random.key(0) if key is None else key
    check_key(key)
    rng = np.random.default_rng(int(jax.random.bits(key, dtype=jnp.uint32)))
    lines: list[Line] = []
    try:
        check_output(target)
    except (ValueError, TypeError) as error:
        return TargetReport(target.name, target.dim, (Line("output", BAD, _plain(error)),), ())
    lines.append(_dtype(target))
    target = one_by_one(target)
    scales, x = trial_points(rng, target.dim)
    values, scores = evaluate(target, x)
    lines.append(_finite(target, values, scores))
    if lines[-1].verdict != BAD:
        lines.append(_gradient(rng, target, x, scores, scales))
        lines.append(_proper(rng, target, scores))
    lines.append(_cost(target, x))
    coordinates: tuple[Coordinate, ...] = ()
    if all(line.verdict != BAD for line in lines):
        coordinates = _coordinates(key, target)
        lines.append(_scales(coordinates))
    return TargetReport(target.name, target.dim, tuple(lines), coordinates)


def _plain(error: Exception) -> str:
    return str(error).removeprefix("`target`: ")


def _dtype(target: Target) -> Line:
    out = jax.eval_shape(target.log_density, jax.ShapeDtypeStruct((target.dim,), jnp.result_type(float)))
    if jnp.finfo(out.dtype).bits < 32:
        return Line("output", CAUTION, f"{out.dtype}: too coarse for a log density; compute it in float32")
    return Line("output", GOOD, f"a scalar, {out.dtype}")


def _finite(target: Target, values: np.ndarray, scores: np.ndarray) -> Line:
    try:
        check_values(target, values, scores)
    except ValueError as error:
        return Line("finite", BAD, _plain(error))
    share = np.mean(np.isfinite(values) & np.isfinite(scores).all(axis=1))
    words = f"at {share:.0%} of {len(values)} points between 0.1 and 10 from the origin"
    return Line("finite", GOOD if share > 0.5 else CAUTION, words)


def _gradient(
    rng: np.random.Generator, target: Target, x: np.ndarray, scores: np.ndarray, scales: np.ndarray
) -> Line:
    found = check_gradient(target, x, scores, scales, rng.normal(size=x.shape))
    if found.conclusive == 0:
        return Line("gradient", CAUTION, "differences are lost in rounding at every point: cannot tell")
    verdict = BAD if found.share > BROKEN else CAUTION if found.share > 0.1 else GOOD
    right = found.conclusive - found.wrong
    words = f"agrees with finite differences at {right} of {found.conclusive} points that can tell"
    return Line("gradient", verdict, words)


def _proper(rng: np.random.Generator, target: Target, scores: np.ndarray) -> Line:
    slow = find_escapes(rng, target, scores, slowest=-1.0)
    worst = sorted((e for e in slow if e.slope > NOT_FALLING), key=lambda e: -e.slope)
    if worst:
        how = "grows" if worst[0].slope > 0.05 else "does not fall"
        return Line("proper", BAD, f"far out it {how} along {'; '.join(e.words for e in worst[:3])}")
    axes = [e for e in slow if "infinity" in e.words]
    if axes:
        words = "; ".join(e.words for e in axes[:3])
        return Line("proper", CAUTION, f"falls more slowly than 1/r along {words}: perhaps not integrable")
    return Line("proper", GOOD, "falls along every way to infinity that was tried")


def _cost(target: Target, x: np.ndarray) -> Line:
    each = seconds_a_look(target, x)
    words = f"{1e6 * each:.3g} microseconds a point for value and gradient, {ROWS} at once"
    return Line("cost", CAUTION if each > 0.01 else GOOD, words)


def _coordinates(key: Key[Array, ""], target: Target) -> tuple[Coordinate, ...]:
    try:
        peaks = find_peaks(key, target, Search(num_walks=64, walk_steps=200))
    except ValueError:
        return ()
    names = target.parameters.coordinate_names() if target.parameters else None
    best = peaks.choleskys[0]
    widths = np.sqrt(np.sum(best**2, axis=1))
    return tuple(
        Coordinate(names[i] if names else f"x[{i}]", float(peaks.points[0][i]), float(widths[i]))
        for i in range(target.dim)
    )


def _scales(coordinates: tuple[Coordinate, ...]) -> Line:
    if not coordinates:
        return Line("scales", CAUTION, "no peak was found by climbing")
    widths = np.array([c.scale for c in coordinates])
    ratio = widths.max() / max(widths.min(), 1e-300)
    words = f"from {widths.min():.3g} to {widths.max():.3g} around the highest peak found"
    if ratio > MAX_RATIO:
        return Line("scales", CAUTION, f"{words}: {ratio:.1g} times apart; other units would make it easier")
    return Line("scales", GOOD, words)
