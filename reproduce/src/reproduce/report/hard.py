"""The study of hard targets, told: bars, distances beside rivals, what is asked of each target, costs."""

from matplotlib.ticker import NullLocator

from reproduce.records import Record
from reproduce.report.bars import table_of
from reproduce.report.cells import Cells, Study, multiple, short
from reproduce.report.drawing import COLOURS, drawn, legend, subplots
from reproduce.report.hard_bars import bars, dimension, distance_metric
from reproduce.report.section import Figure, Section, Table, by_target, told

METHODS = ("default", "mixture", "smc", "nuts", "flow")

ASKED = {
    "modes_found": "Modes found (a tenth of their share or more)",
    "emc": "Entropic mode coverage",
    "mode_weight_error": "Largest error of a mode's weight",
    "neck_sd_error": "Funnels: relative error of the neck's sd",
    "neck_quantile_error": "Funnels: largest error of the neck's 1 to 99 % quantiles, in its sd",
    "tv_wells": "ManyWell: total variation of the worst double-well marginal",
    "tv_normals": "ManyWell: total variation of the worst normal marginal",
    "mean_error_95": "Error of means, in sd: 95 % of coordinates are within",
    "mean_error_max": "Error of means, in sd: the worst coordinate",
    "sd_error_95": "Relative error of sds: 95 % of coordinates are within",
    "sd_error_max": "Relative error of sds: the worst coordinate",
    "tv_distances": "Particles: total variation of pair distances",
    "energy_error": "Particles: error of the mean energy, in its sd",
    "log_z_error": "Error of log Z (default: by its noise head; smc: by its temperatures)",
}


def hard(study: Study) -> Section:
    """Return the study's tables and figures; what was not run is left out."""
    records = study.records
    fixed = Cells([r for r in records if not r.target.startswith("random_")])
    judged = table_of(bars(records))
    met = sum(row[1] == "met" for row in judged.rows)
    tables = [
        judged,
        _distances(fixed),
        *(by_target(fixed, metric, title, METHODS, multiple) for metric, title in ASKED.items()),
        _evidence(fixed),
        _costs(fixed),
        _references(fixed),
        _random(records),
    ]
    return told(study, tables, [_steps(records)], answer=f"Answer: {met} of {len(judged.rows)} bars met. ")


def _methods(cells: Cells, metric: str) -> list[str]:
    return [m for m in METHODS if m in cells.methods(metric)]


def _distances(cells: Cells) -> Table:
    methods = _methods(cells, "sliced_w2")
    rows = [
        (target, *(multiple(cells.get(distance_metric(target), method, target)) for method in methods))
        for target in cells.targets("sliced_w2")
    ]
    return Table("Sliced W2 to the truth", ("target", *methods), tuple(rows))


def _evidence(cells: Cells) -> Table:
    metrics = {
        "efficiency": "efficiency, as the fit says",
        "noise_efficiency": "with a noise head",
        "pareto_k": "Pareto k",
        "elbo_gap": "log Z - ELBO",
    }
    targets = list(dict.fromkeys(t for m in ("outcome_good", *metrics) for t in cells.targets(m)))
    rows = [
        (t, _outcome(cells, t), *(multiple(cells.get(m, "default", t)) for m in metrics)) for t in targets
    ]
    return Table("What the default knows of itself", ("target", "outcome", *metrics.values()), tuple(rows))


def _outcome(cells: Cells, target: str) -> str:
    """Return what the fits of a target say of themselves, over all seeds."""
    good = cells.get("outcome_good", "default", target)
    if good is None:
        return "-"
    return "good" if good.value == 1.0 else "inaccurate" if good.value == 0.0 else "inaccurate on some seeds"


def _costs(cells: Cells) -> Table:
    methods = _methods(cells, "train_seconds")
    rows = []
    for target in cells.targets("train_seconds"):
        figures = [cells.value("train_seconds", m, target) for m in methods]
        figures += [cells.value("draws_per_second", m, target) for m in ("default", "nuts")]
        rows.append((target, *map(short, figures)))
    return Table(
        "Seconds of training, and draws a second after it",
        ("target", *methods, "default: draws a second", "nuts: effective draws a second"),
        tuple(rows),
    )


def _references(cells: Cells) -> Table:
    metrics = ("rhat", "ess", "reference_seconds")
    rows = [
        (target, *(short(cells.value(m, "reference", target)) for m in metrics))
        for target in cells.targets("rhat")
    ]
    return Table(
        "The references", ("target", "largest R-hat", "least effective draws", "seconds"), tuple(rows)
    )


def _random(records: list[Record]) -> Table:
    mine = Cells([r for r in records if r.target.startswith("random_")])
    rows = []
    for target in mine.targets("crashed"):
        metrics = ("crashed", "outcome_good", "train_seconds")
        crashed, good, seconds = (mine.value(m, "default", target) for m in metrics)
        outcome = "crashed" if crashed else "good" if good else "flagged"
        rows.append((target, multiple(mine.get("sliced_w2", "default", target)), outcome, short(seconds)))
    return Table("Twenty random targets", ("target", "sliced W2", "outcome", "seconds"), tuple(rows))


def _steps(records: list[Record]) -> Figure | None:
    found = sorted((dimension(r), r.value) for r in records if r.metric == "step_seconds")
    if len(found) < 2:
        return None
    figure, [[axis]] = subplots(1, 1, (4.6, 3.2))
    dims = [dim for dim, _ in found]
    axis.plot(dims, [1e3 * s for _, s in found], "o-", color=COLOURS["default"], label="a training step")
    base = 1e3 * found[0][1] / dims[0]
    axis.plot(
        dims, [base * dim for dim in dims], "--", color="#4d4d4d", label="in proportion to the dimension"
    )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(dims, [str(dim) for dim in dims])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("dimensions")
    axis.set_ylabel("milliseconds")
    legend(axis)
    return drawn(figure, "hard_steps.svg", "The cost of a training step")
