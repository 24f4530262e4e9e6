"""The core's own proof, told: fits against their floors, and the quantiles of Student's t."""

import numpy as np
from scipy import stats

from reproduce.report.cells import Cells, short, times
from reproduce.report.drawing import COLOURS, save, subplots
from reproduce.report.results import Study
from reproduce.report.section import Figure, Section
from reproduce.report.table import Table

INTRO = (
    "Default, KL and Fisher fits with their own settings, the same for every target, on four densities in "
    "the plane (three training seeds) and on Student's t in one dimension. A figure is the mean over seeds, "
    "with the worst seed beside it, as a multiple of what exact draws score under the same protocol."
)
PLANAR = ("ksd_imq_v", "sliced_w2")


def spine(study: Study) -> Section:
    """Return the tables and the figure; what was not run is left out."""
    cells = Cells(study.records)
    tables = [_multiples(cells, metric) for metric in PLANAR] + [_seconds(cells), _quantiles(cells)]
    figures = [_figure(study.arrays)]
    return Section(
        study.name,
        "The core: fits against their floors",
        INTRO,
        tuple(table for table in tables if table.rows),
        tuple(figure for figure in figures if figure is not None),
    )


def _multiples(cells: Cells, metric: str) -> Table:
    targets, rows = cells.targets(metric), []
    for method in cells.methods(metric):
        found = [cells.get(metric, method, target) for target in targets]
        rows.append((method, *("-" if c is None else f"{times(c.ratio)} ({_worst(c)})" for c in found)))
    titles = {
        "ksd_imq_v": "KSD of 500 draws, as a multiple of its floor (worst seed)",
        "sliced_w2": "Sliced W2 of 20,000 draws, as a multiple of its floor (worst seed)",
    }
    return Table(titles[metric], ("method", *targets), tuple(rows))


def _worst(cell) -> str:
    return times(cell.worst / cell.floor) if cell.floor else short(cell.worst)


def _seconds(cells: Cells) -> Table:
    targets, rows = cells.targets("train_seconds"), []
    for method in cells.methods("train_seconds"):
        found = [cells.get("train_seconds", method, target) for target in targets]
        rows.append((method, *("-" if c is None else f"{c.value:.0f} ({c.worst:.0f})" for c in found)))
    return Table("Seconds to fit, compilation included (worst seed)", ("method", *targets), tuple(rows))


def _quantiles(cells: Cells) -> Table:
    targets, rows = cells.targets("quantile_error"), []
    for metric, words in (("quantile_error", "0.5-99.5 %"), ("quantile_error_inner", "5-95 %")):
        for method in cells.methods(metric):
            found = [cells.get(metric, method, target) for target in targets]
            rows.append(
                (f"{method}, {words}", *("-" if c is None else f"{100 * c.value:.1f} %" for c in found))
            )
    return Table(
        "Student's t: the largest relative error of a quantile",
        ("method, range", *targets),
        tuple(rows),
        "Of a million draws against the true quantiles.",
    )


def _figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return quantiles against true quantiles, a panel per number of degrees of freedom."""
    names = [name for name in arrays if name.startswith("quantiles/")]
    targets = sorted({name.split("/")[2] for name in names}, key=lambda t: -float(t.rsplit("_", 1)[1]))
    if not targets:
        return None
    figure, axes = subplots(1, len(targets), (3.4 * len(targets), 3.4))
    for axis, target in zip(axes[0], targets, strict=True):
        df = float(target.rsplit("_", 1)[1])
        truth = stats.t.ppf(arrays["levels"], df)
        limit = float(np.max(np.abs(truth)))
        axis.plot([-limit, limit], [-limit, limit], color="#999999", lw=1, label="exact")
        for name in (name for name in names if name.endswith(f"/{target}")):
            method = name.split("/")[1]
            axis.plot(truth, arrays[name], ".", ms=3.5, color=COLOURS.get(method, "#444444"), label=method)
        axis.axvspan(*stats.t.ppf([0.005, 0.995], df), color="#0072b2", alpha=0.07, lw=0)
        axis.set_title(f"Student's t, {df:g} degrees of freedom", fontsize=10)
        axis.set_xlabel("true quantile")
    axes[0][0].set_ylabel("quantile of the draws")
    axes[0][0].legend(fontsize=8, frameon=False)
    return Figure(
        "spine_student_t.png",
        save(figure, "png"),
        "Student's t: quantiles of a million draws",
        "From 0.1 % to 99.9 %; the shaded band holds 99 % of the mass, within which quantiles are compared.",
    )
