"""The study of matchings, told: what estimating the sampler's own score costs, at equal seconds."""

import math

from reproduce.report.cells import Cells, Study, short, times
from reproduce.report.section import Section, Table, by_method, told


def matchings(study: Study) -> Section:
    """Return the tables; what was not run is left out."""
    cells = Cells(study.records)
    tables = [
        _summary(cells),
        by_method(cells, "sliced_w2", "Sliced W2, as a multiple of its floor", lambda c: times(c.ratio)),
        by_method(cells, "ksd_imq_v", "KSD, as a multiple of its floor", lambda c: times(c.ratio)),
        by_method(cells, "step_seconds", "Milliseconds a step", lambda c: short(1e3 * c.value)),
        by_method(cells, "iterations", "Steps taken", lambda c: f"{c.value:,.0f}"),
    ]
    return told(study, tables, answer=answer(cells))


def middle(cells: Cells, metric: str, method: str) -> float:
    """Return the geometric mean over targets of a figure, over its floor where it has one."""
    found = [c for t in cells.targets(metric) if (c := cells.get(metric, method, t)) is not None]
    values = [c.ratio if c.floor else c.value for c in found]
    if not values or any(math.isnan(v) or v <= 0 for v in values):
        return math.nan
    return math.exp(sum(map(math.log, values)) / len(values))


def answer(cells: Cells) -> str:
    """Return the answer in a sentence: which matching comes nearest, and what one without a net costs."""
    found = {m: middle(cells, "sliced_w2", m) for m in cells.methods("sliced_w2")}
    nets = {m: value for m, value in found.items() if m != "none" and not math.isnan(value)}
    if not nets or math.isnan(found.get("none", math.nan)):
        return ""
    best = min(nets, key=lambda m: nets[m])
    steps = {m: middle(cells, "step_seconds", m) for m in (best, "none")}
    return (
        f"Answer: of the estimates, `{best}` comes nearest in the same seconds, at {times(nets[best])} of "
        "the floor of sliced W2 (geometric mean of the targets); without any estimate it is "
        f"{times(found['none'])}, at {times(steps['none'] / steps[best])} the seconds a step."
    )


def _summary(cells: Cells) -> Table:
    metrics = {"step_seconds": 1e3, "sliced_w2": 1.0, "ksd_imq_v": 1.0}
    rows = [
        (method, *(short(scale * middle(cells, metric, method)) for metric, scale in metrics.items()))
        for method in cells.methods("sliced_w2")
    ]
    return Table(
        "Geometric means over the targets",
        ("matching", "milliseconds a step", "sliced W2 over its floor", "KSD over its floor"),
        tuple(rows),
    )
