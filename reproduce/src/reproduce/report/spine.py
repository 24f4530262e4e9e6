"""The core's own proof, told: fits against their floors, and the quantiles of Student's t."""

import numpy as np
from scipy import stats

from reproduce.report.cells import Cell, Cells, Study, short, times
from reproduce.report.drawing import COLOURS, drawn, legend, subplots
from reproduce.report.section import Figure, Section, Table, by_method, told

INTRO = (
    "Default, KL and Fisher fits with their own settings, the same for every target, on four densities in "
    "the plane (three training seeds) and on Student's t in one dimension. A figure is the mean over seeds, "
    "with the worst seed beside it, as a multiple of what exact draws score under the same protocol."
)
PLANAR = {
    "ksd_imq_v": "KSD of 500 draws, as a multiple of its floor (worst seed)",
    "sliced_w2": "Sliced W2 of 20,000 draws, as a multiple of its floor (worst seed)",
}


def spine(study: Study) -> Section:
    """Return the tables and the figure; what was not run is left out."""
    cells = Cells(study.records)
    tables = [*(by_method(cells, m, title, _multiple) for m, title in PLANAR.items()), *_more(cells)]
    title = "The core: fits against their floors"
    return told(study, title, INTRO, tables, [_figure(study.arrays)])


def _multiple(cell: Cell) -> str:
    return f"{times(cell.ratio)} ({_worst(cell)})"


def _worst(cell: Cell) -> str:
    return times(cell.worst / cell.floor) if cell.floor else short(cell.worst)


def _more(cells: Cells) -> list[Table]:
    title = "Seconds to fit, compilation included (worst seed)"
    seconds = by_method(cells, "train_seconds", title, lambda c: f"{c.value:.0f} ({c.worst:.0f})")
    targets = cells.targets("quantile_error")
    rows = [
        (f"{method}, {words}", *cells.across(metric, method, targets, lambda c: f"{100 * c.value:.1f} %"))
        for metric, words in (("quantile_error", "0.5-99.5 %"), ("quantile_error_inner", "5-95 %"))
        for method in cells.methods(metric)
    ]
    title = "Student's t: the largest relative error of a quantile"
    words = "Of a million draws against the true quantiles."
    return [seconds, Table(title, ("method, range", *targets), tuple(rows), words)]


def _figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return quantiles against true quantiles, a panel per number of degrees of freedom."""
    names = [name for name in arrays if name.startswith("quantiles/")]
    targets = sorted({name.split("/")[2] for name in names}, key=lambda t: -float(t.rsplit("_", 1)[1]))
    if not targets:
        return None
    figure, axes = subplots(1, len(targets), (3.4 * len(targets), 3.4), boxed=True)
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
    legend(axes[0][0])
    return drawn(
        figure,
        "spine_student_t.png",
        "Student's t: quantiles of a million draws",
        "From 0.1 % to 99.9 %; the shaded band holds 99 % of the mass, within which quantiles are compared.",
    )
