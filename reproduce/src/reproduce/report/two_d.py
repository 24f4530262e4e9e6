"""The study of six densities in the plane, told: the paper's two tables, and what they leave out."""

import math

from reproduce.report import paper
from reproduce.report.bars import bars_table
from reproduce.report.cells import Cell, Cells, Study, in_order, multiple, short, times
from reproduce.report.curves import curve_figures, draws_figure
from reproduce.report.section import Section, Table, by_method, told
from reproduce.report.speed import speed_figure, speed_tables

ORDER = (
    *("exact", "default", "kl", "fisher", "smc", "mixture", "default-thin", "default-sobol"),
    *("ld", "hmc", "svgd", "flow", "ksd-ns", "steingan", "kl-plain", "fisher-plain"),
)


def two_d(study: Study) -> Section:
    """Return the study's tables and figures; what was not run is left out."""
    cells = Cells(study.records)
    tables = [
        bars_table(cells),
        Table("Table 1: KSD, a fixed checkpoint", *_with_the_papers(cells, "ksd_imq_v")),
        Table(
            "Table 1 under the paper's protocol: the best of all checkpoints",
            *_with_the_papers(cells, "ksd_imq_v_best"),
        ),
        _pairs_table(cells),
        *_unbiased_tables(cells),
        _moments_table(cells),
        *speed_tables(cells),
        _settings_table(cells),
    ]
    figures = [draws_figure(study.arrays), *curve_figures(study.arrays, cells), speed_figure(cells)]
    return told(study, tables, figures, answer=_answer(cells))


def _answer(cells: Cells) -> str:
    """Return the worst multiples of the floor, method by method."""
    found = []
    for method in ("default", "kl", "fisher"):
        worst = [
            max((c.ratio for t in paper.TARGETS if (c := cells.get(metric, method, t))), default=math.nan)
            for metric in ("ksd_imq_v", "sliced_w2")
        ]
        if not any(map(math.isnan, worst)):
            found.append(f"`{method}` {times(worst[0])} and {times(worst[1])}")
    if not found:
        return ""
    return f"Answer: KSD and sliced W2 over their floors, the worst of the six: {', '.join(found)}.\n\n"


def _settings_table(cells: Cells) -> Table:
    """Return how each network is trained; counts of the score net where one is fitted."""

    def told_of(method: str) -> tuple[str, ...]:
        found = {m: cells.value(f"setting_{m}", method, paper.TARGETS[0]) for m in SETTINGS}
        frame = {None: "own coordinates", 0.0: "own coordinates", 1.0: "frame"}[found["annealed"]]
        start = "mixture" if found["mixture"] else frame
        sizes = ("{parameters:,.0f}", "{batch_size:,.0f}", "{learning_rate:g}", "{num_steps:,.0f}")
        score = "{score_width:.0f} x {score_depth:.0f}, {score_parameters:,.0f}"
        steps = "{score_steps:.0f} x {score_batch_size:.0f} at {score_learning_rate:g}"
        depth = "" if found["depth"] is None else f" x {found['depth']:.0f}"
        nets = ("-", "-") if not found["score_parameters"] else (score.format(**found), steps.format(**found))
        width = f"{found['width']:.0f}{depth}"
        return (method, start, short(found["latents"], 1), width, *(s.format(**found) for s in sizes), *nets)

    columns = ("method", "start", "latents", "width x depth", "parameters", "batch", "rate", "steps")
    return Table(
        "Settings",
        (*columns, "score net, parameters", "score steps x draws, rate"),
        tuple(map(told_of, in_order(cells.methods("setting_width"), ORDER))),
    )


SETTINGS = (
    *("annealed", "mixture", "latents", "width", "depth", "parameters", "batch_size", "learning_rate"),
    *("num_steps", "score_width", "score_depth", "score_parameters", "score_steps", "score_batch_size"),
    "score_learning_rate",
)


def _methods(cells: Cells, metric: str) -> list[str]:
    return in_order(cells.methods(metric), ORDER)


def _floors(cells: Cells, metric: str, targets: list[str]) -> tuple[str, ...]:
    """Return the row of floors, at the draws that most methods were judged by."""
    row = ["floor"]
    for target in targets:
        found = [cells.get(metric, method, target) for method in _methods(cells, metric)]
        row.append(short(next((c.floor for c in found if c is not None), None)))
    return tuple(row)


def _with_the_papers(cells: Cells, metric: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the columns and rows of a KSD, the paper's below ours.

    The paper's Funnel column belongs to the wrong score: it stands under that target.
    """
    targets = cells.targets(metric)
    rows = [_floors(cells, metric, targets)] if targets else []
    for method in _methods(cells, metric):
        rows.append((method, *cells.across(metric, method, targets, _spread)))
        if method in paper.KSD:
            theirs = [paper.ksd(method, target) if target != "funnel" else None for target in targets]
            words = ("-" if t is None else f"{t[0]:.3f} ± {t[1]:.3f}" for t in theirs)
            rows.append((f"  paper: {method}", *words))
    return ("method", *targets), tuple(rows)


def _spread(cell: Cell) -> str:
    if math.isnan(cell.value):
        return "diverged"
    spread = "" if cell.spread is None else f" ± {cell.spread:.3f}"
    return f"{cell.value:.3f}{spread} ({times(cell.ratio)})"


def _pairs_table(cells: Cells) -> Table:
    columns = [("sliced_w2", target) for target in cells.targets("sliced_w2")]
    columns += [(m, t) for m in ("sliced_w2_asinh", "mode_weight_error") for t in cells.targets(m)]
    names = {"sliced_w2": "", "sliced_w2_asinh": "in asinh: ", "mode_weight_error": "mode weights: "}
    rows = []
    for method in _methods(cells, "sliced_w2"):
        found = [cells.get(metric, method, target) for metric, target in columns]
        first = next((c for c in found if c is not None), None)
        size = f"{first.n:,}" if first is not None and first.n else "-"
        rows.append((method, size, *map(multiple, found)))
    return Table(
        "Sliced W2 to exact draws, and mode weights",
        ("method", "n", *(names[metric] + target for metric, target in columns)),
        tuple(rows),
    )


def _unbiased_tables(cells: Cells) -> list[Table]:
    """Return the metrics that are zero on average for exact draws: no floor, but a standard error."""
    titles = {
        "mmd": "Squared MMD to exact draws",
        "ksd_imq_u": "KSD without its floor: the U-statistic, inverse multiquadric kernel",
        "ksd_rbf_u": "KSD without its floor: the U-statistic, the narrow kernel of the paper's appendix",
    }
    words = lambda cell: f"{1e3 * cell.value:.3f} ± {1e3 * cell.error:.3f}"  # noqa: E731
    return [by_method(cells, m, t, words, methods=_methods(cells, m)) for m, t in titles.items()]


def _moments_table(cells: Cells) -> Table:
    targets = cells.targets("rmse_mean")
    rows = []
    for metric, words in (("rmse_mean", "means"), ("rmse_second", "second moments")):
        found = [cells.get(metric, "default-sobol", target) for target in targets]
        for kind, part in (
            ("independent", "floor"),
            ("Sobol", "value"),
            ("Sobol, the sampler's bias apart", "spread"),
        ):
            rows.append((f"{words}: {kind}", *(short(getattr(c, part, None)) for c in found)))
        gains = [c.floor / c.value if c and c.floor else math.nan for c in found]
        rows.append((f"{words}: times smaller", *(times(gain) for gain in gains)))
    return Table(
        "Better than independent: scrambled Sobol latents",
        ("root mean square error", *targets),
        tuple(rows) if targets else (),
    )
