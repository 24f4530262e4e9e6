"""The paper's identities, told: errors against the size of the sample, its slips, and Student's t."""

import numpy as np
from scipy import stats

from reproduce.report.cells import Cells, Study, short
from reproduce.report.drawing import COLOURS, drawn, legend, subplots
from reproduce.report.section import Figure, Section, Table, prose_of, table_in, told

NAMES = {
    "kl": "gradient of KL (eq. 3)",
    "fisher": "gradient of Fisher (eq. 9)",
    "proposition-1": "Proposition 1: value and slopes at the best critic",
    "theorem-2": "Theorem 2: gradient at the best critic",
    "fisher-first-term": "Fisher's first term alone (eq. 6)",
}


def theory(study: Study) -> Section:
    """Return the study's tables and figures; what was not run is left out."""
    cells = Cells(study.records)
    slips = table_in("Slips of the paper", prose_of("slips").intro)
    figures = [_errors_figure(cells), _quantile_figure(study.arrays)]
    return told(study, [_errors(cells), slips, _student(cells)], figures)


def _sizes(cells: Cells) -> list[str]:
    return [metric for metric in cells.metrics() if metric.startswith("error_")]


def _errors(cells: Cells) -> Table:
    sizes = _sizes(cells)
    rows = [
        (
            f"{words}, {target}",
            *(short(cells.value(metric, method, target), 2) for metric in (*sizes, "bias")),
            f"{cells.value('cosine', method, target):.3f}",
        )
        for method, words in NAMES.items()
        for target in cells.targets("bias")
        if cells.get("bias", method, target) is not None
    ]
    return Table(
        "Relative error of each identity against the number of draws",
        ("identity", *(f"{int(size.split('_')[1]):,}" for size in sizes), "mean of all", "cosine"),
        tuple(rows),
    )


def _errors_figure(cells: Cells) -> Figure | None:
    sizes = _sizes(cells)
    if not sizes:
        return None
    figure, [[axis]] = subplots(1, 1, (5.6, 3.8))
    n = np.array([int(size.split("_")[1]) for size in sizes])
    colours = dict(zip(NAMES, ("#d55e00", "#009e73", "#0072b2", "#cc79a7", "#4d4d4d"), strict=True))
    for method, words in NAMES.items():
        lines = [[cells.value(s, method, t) or np.nan for s in sizes] for t in cells.targets("bias")]
        for number, line in enumerate(lines):
            dashes = "--" if method == "fisher-first-term" else "-"
            label = words if number == 0 else None
            axis.plot(n, line, ls=dashes, marker=".", color=colours[method], lw=1.2, label=label)
    axis.plot(n, 5.0 / np.sqrt(n), color="#bbbbbb", lw=3, zorder=0, label="one over the root")
    axis.set(xscale="log", yscale="log", xlabel="draws", ylabel="relative error")
    legend(axis, fontsize=7)
    return drawn(figure, "theory_errors.svg", "Identities against the number of draws")


def _student(cells: Cells) -> Table:
    targets = cells.targets("quantile_error")
    rows = [
        (f"{method}, {words}", *cells.across(metric, method, targets, lambda c: f"{100 * c.value:.1f} %"))
        for metric, words in (("quantile_error", "0.5-99.5 %"), ("quantile_error_inner", "5-95 %"))
        for method in cells.methods(metric)
    ]
    return Table(
        "Student's t: the largest relative error of a quantile", ("method, range", *targets), tuple(rows)
    )


def _quantile_figure(arrays: dict[str, np.ndarray]) -> Figure | None:
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
    return drawn(figure, "theory_student_t.png", "Student's t: quantiles of a million draws")
