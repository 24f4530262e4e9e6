"""Table 2: what a thousand draws cost, and when training has paid for itself."""

import math

from reproduce.report import paper
from reproduce.report.cells import Cells, short, times
from reproduce.report.drawing import COLOURS, drawn, subplots
from reproduce.report.section import Figure, Table

ORDER = ("kl", "default", "flow", "ld", "hmc", "svgd", "default-thin")


def speed_tables(cells: Cells) -> list[Table]:
    """Return times, ratios and break-even points."""
    return [_seconds_table(cells), _ratio_table(cells), _training_table(cells)]


def _methods(cells: Cells) -> list[str]:
    known = cells.methods("seconds_per_1k_draws")
    return [m for m in ORDER if m in known] + [m for m in known if m not in ORDER]


def _seconds_table(cells: Cells) -> Table:
    metric, targets, rows = "seconds_per_1k_draws", cells.targets("seconds_per_1k_draws"), []

    def add(name: str, metric: str, method: str, scale: float) -> None:
        repeats = next((str(c.repeats) for t in targets if (c := cells.get(metric, method, t))), "-")
        rows.append((name, repeats, *cells.across(metric, method, targets, lambda c: short(scale * c.value))))

    for method in _methods(cells):
        add(method, metric, method, 1e3)
        theirs = [paper.seconds(method, target) for target in targets]
        if any(theirs):
            words = ("-" if t is None else short(1e3 * t, 4) for t in theirs)
            rows.append((f"  paper: {method}", "100", *words))
    for method in cells.methods("seconds_per_1m_draws"):
        add(f"{method}, of a million at once", "seconds_per_1m_draws", method, 1.0)
    return Table("Table 2: milliseconds per 1,000 draws", ("method", "repeats", *targets), tuple(rows))


def _ratio_table(cells: Cells) -> Table:
    metric, targets, rows = "ratio_to_kl", cells.targets("ratio_to_kl"), []
    for method in _methods(cells):
        rows.append((method, *cells.across(metric, method, targets, lambda c: times(c.value))))
        if method in paper.SECONDS and method != "kl":
            pairs = [(paper.seconds(method, t), paper.seconds("kl", t)) for t in targets]
            rows.append((f"  paper: {method}", *(times(a / b) if a and b else "-" for a, b in pairs)))
    return Table("Table 2: ratios to KL-NS", ("method", *targets), tuple(rows))


def _training_table(cells: Cells) -> Table:
    targets = [t for t in cells.targets("train_seconds") if t != "published_funnel"]
    # Thinned and Sobol draws share the default's training.
    trained = [m for m in cells.methods("train_seconds") if m not in ("default-thin", "default-sobol")]
    even = lambda c: "never" if math.isnan(c.value) else short(c.value)  # noqa: E731
    rows = [
        *((f"training {m}, seconds", "train_seconds", m, lambda c: f"{c.value:.1f}") for m in trained),
        *(
            (f"draws until KL-NS has overtaken {m}", "break_even", m, even)
            for m in cells.methods("break_even")
        ),
    ]
    return Table(
        "Training, and when it has paid for itself",
        ("", *targets),
        tuple((name, *cells.across(metric, m, targets, words)) for name, metric, m, words in rows),
    )


def speed_figure(cells: Cells, target: str = "mog2") -> Figure | None:
    """Return a bar per method: seconds per 1,000 draws, on a logarithmic axis."""
    metric = "seconds_per_1k_draws"
    methods = [m for m in _methods(cells) if cells.get(metric, m, target)]
    if not methods:
        targets = cells.targets(metric)
        return speed_figure(cells, targets[0]) if targets and targets[0] != target else None
    values = [cell.value for m in methods if (cell := cells.get(metric, m, target))]
    ours = cells.get(metric, "kl", target)
    figure, [[axis]] = subplots(1, 1, (6.0, 0.45 * len(methods) + 1.0))
    axis.barh(range(len(methods)), values, color=[COLOURS.get(m, "#888888") for m in methods], height=0.7)
    for place, value in enumerate(values):
        ratio = f"  ({times(value / ours.value)})" if ours else ""
        axis.text(value * 1.15, place, f"{short(1e3 * value)} ms{ratio}", va="center", fontsize=9)
    axis.set_xscale("log")
    axis.set_xlim(min(values) / 2, max(values) * 40)
    axis.set_yticks(range(len(methods)), methods)
    axis.invert_yaxis()
    axis.set_xlabel("seconds per 1,000 draws")
    words = f"On {target}: medians, all compiled and warmed; in brackets the ratio to KL-NS."
    return drawn(figure, "two_d_speed.svg", "Speed", words)
