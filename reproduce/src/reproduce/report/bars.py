"""The bars this study was set before it was run, and which of them it met: computed, not typed."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reproduce.report import paper
from reproduce.report.cells import Cell, Cells, short
from reproduce.report.section import Table

SIX = paper.TARGETS
TITLE = "Bars, met and missed"


@dataclass(frozen=True)
class Check:
    """One figure against its limit."""

    label: str
    value: float
    limit: float
    at_most: bool = True
    words: str = ""  # said in place of the value, where the value is not a thing to read

    def __str__(self) -> str:
        return f"{self.label} {self.words or short(self.value)}"

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side; one that is not a number never is."""
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    @property
    def margin(self) -> float:
        """How far on the right side, as a factor: below one is a miss."""
        if not (math.isfinite(self.value) and self.value > 0):
            return 0.0 if not self.met else math.inf
        return self.limit / self.value if self.at_most else self.value / self.limit


def judged(bars: Iterable[tuple[str, list[Check]]]) -> tuple[tuple[str, str, str, str], ...]:
    """Return for each bar that was measured: its words, the verdict, the tightest figure and the misses."""
    rows = []
    for words, checks in bars:
        if not checks:
            continue
        missed = [check for check in checks if not check.met]
        worst = min(checks, key=lambda check: check.margin)
        verdict = "met" if not missed else f"missed on {len(missed)} of {len(checks)}"
        details = ", ".join(map(str, missed)) or "none"
        tightest = str(worst) if worst.words else f"{worst} (bar {short(worst.limit)})"
        rows.append((words, verdict, tightest, details))
    return tuple(rows)


def table_of(bars: Iterable[tuple[str, list[Check]]], words: str) -> Table:
    """Return a row per bar: what was asked, whether it was met, the tightest figure, and the misses."""
    return Table(TITLE, ("bar", "verdict", "tightest", "misses"), judged(bars), words, wraps=True)


def bars_table(cells: Cells) -> Table:
    """Return a row per bar of the study in the plane."""
    words = "Set before the study was run. Figures are means over training seeds and repeats."
    return table_of(_bars(cells), words)


def _bars(cells: Cells) -> list[tuple[str, list[Check]]]:
    def ratio(metric: str, method: str, limit: float, targets: Iterable[str] = SIX) -> list[Check]:
        return _each(cells, metric, method, targets, lambda cell: cell.ratio, limit)

    return [
        ("KL-NS: KSD at most 1.05 x floor", ratio("ksd_imq_v", "kl", 1.05)),
        ("default: KSD at most 1.05 x floor", ratio("ksd_imq_v", "default", 1.05)),
        ("Fisher-NS: KSD at most 1.15 x floor", ratio("ksd_imq_v", "fisher", 1.15)),
        ("default: sliced W2 at most 1.25 x floor", ratio("sliced_w2", "default", 1.25)),
        (
            "default: Funnel in asinh coordinates, sliced W2 at most 1.25 x floor",
            ratio("sliced_w2_asinh", "default", 1.25, ("funnel",)),
        ),
        (
            "default: MOG2 mode weights within 0.005",
            _each(cells, "mode_weight_error", "default", ("mog2",), lambda cell: cell.value, 0.005),
        ),
        ("default: worse than neither teacher nor mixture, better on one metric", _against_teacher(cells)),
        ("500 thinned of a one-shot pool: KSD below the paper's SVGD", _thinned(cells)),
        ("pool and thinning at least 10 x faster than compiled SVGD", _thinning_speed(cells)),
        ("Sobol: errors of moments at least 5 x below independent draws", _sobol(cells)),
        ("MOG2: ratio of compiled LD, HMC, SVGD to KL-NS at least the paper's", _ratios(cells)),
        ("LD, HMC, SVGD: within the paper's error bars (a multiple of them, at most 1)", _reproduced(cells)),
        ("the whole study within 75 minutes", _minutes(cells)),
    ]


def _each(
    cells: Cells,
    metric: str,
    method: str,
    targets: Iterable[str],
    figure: Callable[[Cell], float],
    limit: float,
    *,
    at_most: bool = True,
) -> list[Check]:
    found = [(target, cells.get(metric, method, target)) for target in targets]
    return [Check(target, figure(cell), limit, at_most) for target, cell in found if cell is not None]


def _against_teacher(cells: Cells) -> list[Check]:
    """Compare by standard errors: two of them make a difference, and a tie on everything is a miss too."""
    checks = []
    for target in SIX:
        for rival in ("smc", "mixture"):
            losses = []
            for metric in ("ksd_imq_u", "sliced_w2"):
                ours, theirs = cells.get(metric, "default", target), cells.get(metric, rival, target)
                if ours is not None and theirs is not None:
                    error = math.hypot(ours.error, theirs.error) or math.inf
                    losses.append((ours.value - theirs.value) / error)
            if losses:
                better, worst = min(losses) < -2, max(losses)
                words = "better" if better else "a tie"
                if worst > 2:
                    words = f"worse by {worst:.1f} standard errors"
                lost = 2.0 if worst > 2 else 0.0 if better else 1.0
                checks.append(Check(f"{target} against {rival}:", lost, 0.5, words=words))
    return checks


def _thinned(cells: Cells) -> list[Check]:
    found = ((t, cells.value("ksd_imq_v", "default-thin", t), paper.ksd("svgd", t)) for t in SIX)
    return [Check(target, ours, theirs[0]) for target, ours, theirs in found if ours is not None and theirs]


def _thinning_speed(cells: Cells) -> list[Check]:
    metric = "seconds_per_1k_draws"
    found = ((t, cells.value(metric, "default-thin", t), cells.value(metric, "svgd", t)) for t in SIX)
    return [Check(t, svgd / ours, 10.0, at_most=False) for t, ours, svgd in found if ours and svgd]


def _sobol(cells: Cells) -> list[Check]:
    checks = []
    for metric, words in (("rmse_mean", "mean"), ("rmse_second", "second")):
        for target in ("gaussian", "rosenbrock", "squiggle"):
            cell = cells.get(metric, "default-sobol", target)
            if cell is not None and cell.floor:
                checks.append(Check(f"{target} {words}", cell.floor / cell.value, 5.0, at_most=False))
    return checks


def _ratios(cells: Cells) -> list[Check]:
    limits = {"ld": 154.0, "hmc": 1223.0, "svgd": 18_800.0}
    found = ((m, cells.value("ratio_to_kl", m, "mog2"), limit) for m, limit in limits.items())
    return [Check(m, value, limit, at_most=False) for m, value, limit in found if value is not None]


def _reproduced(cells: Cells) -> list[Check]:
    checks = []
    for method in ("ld", "hmc", "svgd"):
        # The paper's Funnel column was made with the published score.
        for target in [t if t != "funnel" else "published_funnel" for t in SIX]:
            cell, theirs = cells.get("ksd_imq_v", method, target), paper.ksd(method, target)
            if cell is not None and theirs is not None:
                checks.append(Check(f"{method} {target}", abs(cell.value - theirs[0]) / theirs[1], 1.0))
    return checks


def _minutes(cells: Cells) -> list[Check]:
    metric = "row_seconds"
    total = sum(
        cell.value * cell.seeds
        for method in cells.methods(metric)
        for target in cells.targets(metric)
        if (cell := cells.get(metric, method, target)) is not None
    )
    return [Check("minutes", total / 60, 75.0)] if total else []
