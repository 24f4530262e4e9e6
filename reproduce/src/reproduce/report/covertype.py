"""The study of a real posterior, told: the paper's Table 3, and what accuracy does not say."""

import math
import statistics

from reproduce.records import Record
from reproduce.report import paper
from reproduce.report.cells import Cells, Study, in_order, short
from reproduce.report.covertype_figures import calibration_figure, curve_figure, moments_figure
from reproduce.report.covertype_tables import ORDER, bars_table, noise, reference, speed, titled
from reproduce.report.section import Section, Table, told


def covertype(study: Study) -> Section:
    """Return the study's tables and figures; what was not run is left out."""
    cells = Cells(study.records)
    tables = []
    for target in cells.targets("row_seconds"):
        tables += [
            bars_table(study.records, target),
            _accuracy(study.records, cells, target),
            _moments(cells, target),
            noise(cells, target),
            speed(cells, target),
            reference(cells, target),
        ]
    figures = [curve_figure(study.arrays), calibration_figure(study.arrays), moments_figure(study.arrays)]
    return told(study, tables, figures, answer=_answer(cells))


def _answer(cells: Cells) -> str:
    """Return how the paper's accuracies lie to that of the posterior itself."""
    exact = cells.value("accuracy", "nuts", "covertype")
    if exact is None:
        return ""
    above = " and ".join(f"{theirs:.2f}" for theirs, _ in paper.ACCURACY.values() if theirs > 100 * exact)
    return (
        f"The posterior itself, sampled by NUTS on all of the data, scores {100 * exact:.2f} %; the paper's "
        f"{above} lie above it, as no sampler of this posterior can but by luck, another split or other "
        "features. "
    )


def _over_splits(records: list[Record], metric: str, method: str, target: str) -> tuple[str, str]:
    """Return the standard deviation over splits of a metric, and of its difference to NUTS, as `± ...`."""
    mine = [r for r in records if (r.metric, r.method, r.target) == (metric, method, target)]
    scale, digits = (100.0, 2) if metric == "accuracy" else (1.0, 4)
    values = [scale * r.value for r in mine]
    gaps = [scale * (r.value - r.floor) for r in mine if r.floor is not None]
    return _spread(values, digits), _spread(gaps, digits + 1)


def _spread(values: list[float], digits: int) -> str:
    return f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""


def _accuracy(records: list[Record], cells: Cells, target: str) -> Table:
    rows = []
    for method in in_order(cells.methods("accuracy"), ORDER):
        accuracy, log_p = (cells.get(m, method, target) for m in ("accuracy", "log_predictive"))
        calibration, steps = (cells.value(m, method, target) for m in ("calibration_error", "iterations"))
        if accuracy is None or log_p is None:
            continue
        theirs = paper.ACCURACY.get(method)
        spread, gap_spread = _over_splits(records, "accuracy", method, target)
        log_spread, nats_spread = _over_splits(records, "log_predictive", method, target)
        gap = "-" if accuracy.floor is None else f"{100 * (accuracy.value - accuracy.floor):+.3f}{gap_spread}"
        nats = "-" if log_p.floor is None else f"{log_p.value - log_p.floor:+.5f}{nats_spread}"
        broken = math.isnan(accuracy.value)
        rows.append((
            method,
            "diverged" if broken else f"{100 * accuracy.value:.2f}{spread}",
            "-" if broken else gap,
            "-" if theirs is None else f"{theirs[0]} ± {theirs[1]}",
            "-" if broken else f"{log_p.value:.4f}{log_spread}",
            "-" if broken else nats,
            short(calibration, 2),
            "-" if steps is None else f"{steps:,.0f}",
            str(accuracy.seeds),
        ))  # fmt: skip
    columns = (
        *("method", "accuracy, %", "minus NUTS, points", "paper, %", "log predictive"),
        *("minus NUTS, nats", "calibration error", "iterations", "splits"),
    )
    return Table(
        titled("Table 3: held-out accuracy and log predictive, 100 draws", target), columns, tuple(rows)
    )


def _moments(cells: Cells, target: str) -> Table:
    rows = []
    for method in in_order(cells.methods("mean_error"), ORDER):
        names = ("mean_error", "mean_share", "sd_ratio", "sd_low", "sd_high", "sd_share")
        found = [value for name in names if (value := cells.value(name, method, target)) is not None]
        if len(found) < len(names):
            continue
        error, near, ratio, low, high, share = found
        if math.isnan(error):
            rows.append((method, "diverged", *["-"] * 4))
            continue
        rows.append((
            method, short(error), f"{100 * near:.0f} %", short(ratio), f"{short(low, 2)} - {short(high, 2)}",
            f"{100 * share:.0f} %",
        ))  # fmt: skip
    return Table(
        titled("Means and standard deviations of every coordinate, against NUTS", target),
        (
            *("method", "mean error, 95 % of coordinates", "means within 0.1 sd"),
            *("sd ratio, median", "sd ratio, range", "sds within 10 %"),
        ),
        tuple(rows),
    )
