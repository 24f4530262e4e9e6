"""The study of an energy-based model of images, told: the paper's Table 4."""

import math

from reproduce.report import paper
from reproduce.report.bars import Check
from reproduce.report.cells import Cells, Study, short, times
from reproduce.report.ebm_figures import film_figure, grid_figure, speed_figure
from reproduce.report.section import Section, Table, told

TARGET, TIME = "images", "seconds_per_image"


def ebm(study: Study) -> Section:
    """Return the study's tables and figures; what was not run is left out."""
    cells = Cells(study.records)
    tables = (_bars(cells), _quality(cells), _speed(cells), _classes(cells), _nets(cells))
    figures = (grid_figure(study.arrays), film_figure(study.arrays), speed_figure(cells, TARGET))
    return told(study, tables, figures)


def _value(cells: Cells, metric: str, method: str) -> float:
    value = cells.value(metric, method, TARGET)
    return math.nan if value is None else value


def _compared(cells: Cells, metric: str, method: str) -> float:
    """Return a figure as a mean over sets of images, if there are several."""
    value = _value(cells, f"{metric}_as_rows", method)
    return _value(cells, metric, method) if math.isnan(value) else value


def _of_sets(cells: Cells, metric: str, method: str, sets: str = "as_rows") -> str:
    cell = cells.get(f"{metric}_{sets}", method, TARGET)
    return "-" if cell is None else f"{short(cell.value)} ± {short(cell.spread or 0.0, 2)}"


def _rows(cells: Cells) -> list[str]:
    return [m for m in cells.methods("fid") if m.startswith("langevin-")]


def _bars(cells: Cells) -> Table:
    rows = _rows(cells)
    if not rows or cells.get("fid", "kl", TARGET) is None:
        return Table("Bars, met and missed", ("bar", "verdict", "figure"), ())
    seconds, checks = _value(cells, TIME, "kl"), _against_rows(cells, rows)
    for number, limit in ((250, 700.0), (100, 288.0)):
        if f"langevin-{number}" in rows:
            words = f"wall-clock per image, {number} evaluations over one pass, at least {limit}"
            ratio = _value(cells, TIME, f"langevin-{number}") / seconds
            checks.append((words, Check("", ratio, limit, at_most=False)))
    for words, metric, method, limit in (
        ("KL sampler: every digit at least 4 % of the draws (the rarest)", "least_class_share", "kl", 0.04),
        ("classifier: at least 99 % of the test set", "accuracy", "classifier", 0.99),
    ):
        checks.append((words, Check("", _value(cells, metric, method), limit, at_most=False)))
    for method, who in (("kl", "KL"), ("fisher", "Fisher")):
        value, start = (_compared(cells, "fid", each) for each in (method, "start"))
        if not (math.isnan(value) or math.isnan(start)):
            words = f"{who} sampler trains: its FID is below that of the start"
            checks.append((words, Check("", value, start)))
    return Table(
        "Bars, met and missed",
        ("bar", "verdict", "figure"),
        tuple(
            (words, "met" if c.met else "missed", f"{short(c.value, 4)} (bar {short(c.limit, 4)})")
            for words, c in checks
        ),
        wraps=True,
    )


def _against_rows(cells: Cells, rows: list[str]) -> list[tuple[str, Check]]:
    """Return the sampler's FID and KID against those of the energy's rows, taken in three ways.

    First with independent latents, as the rows are, then with evenly spread ones, which chains cannot have.
    """
    again = next(iter(cells.methods("fid_fresh")), "")
    ways = (
        ("the best of the energy's rows, on fresh sets", lambda m: _value(cells, f"{m}_fresh", again)),
        ("the lowest mean of a row", lambda m: min(_compared(cells, m, row) for row in rows)),
        ("the lowest first set of a row", lambda m: min(_value(cells, m, row) for row in rows)),
    )
    checks = []
    for method, who in (("kl", "KL sampler"), ("kl-sobol", "KL sampler, Sobol latents")):
        for words, of_rows in ways:
            fid, kid = (_compared(cells, metric, method) for metric in ("fid", "kid"))
            if math.isnan(fid) or math.isnan(of_rows("fid")):
                continue
            checks += [
                (f"{who}: FID at most 1.065 times {words} (ratio)", Check("", fid / of_rows("fid"), 1.065)),
                (f"{who}: KID at most {words}", Check("", kid, of_rows("kid"))),
            ]
    return checks


def _quality(cells: Cells) -> Table:
    rows = []
    for method in cells.methods("fid"):
        fid, kid = cells.get("fid", method, TARGET), cells.get("kid", method, TARGET)
        near = cells.get("neighbour_distance", method, TARGET)
        if fid is None or kid is None:
            continue
        theirs = paper.IMAGES.get(method)
        rows.append((
            method, short(_value(cells, "nfe", method), 3), str(fid.n), short(fid.value), times(fid.ratio),
            _of_sets(cells, "fid", method), _of_sets(cells, "fid", method, "fresh"),
            short(_value(cells, "fid_of_shares", method)),
            short(_compared(cells, "kid", method)),
            short(_value(cells, "class_entropy", method)),
            "-" if near is None else f"{short(near.value)} ({times(near.ratio)})",
            "-" if theirs is None else f"{theirs[0]} / {theirs[1]}",
        ))  # fmt: skip
    return Table(
        "Quality",
        (
            *("method", "evaluations", "images", "FID", "x floor", "FID, mean of sets", "of fresh sets"),
            *("FID of its shares", "KID", "class entropy", "nearest training image", "paper's FID / KID"),
        ),
        tuple(rows),
    )


def _speed(cells: Cells) -> Table:
    rows, base, per_evaluation = [], _value(cells, TIME, "kl"), _value(cells, "flops", "energy")
    for method in cells.methods(TIME):
        cell = cells.get(TIME, method, TARGET)
        if cell is None:
            continue
        flops = _value(cells, "flops", method)
        if method.startswith("langevin-"):
            flops = per_evaluation * float(method.split("-")[1])
        theirs = paper.IMAGES.get(method)
        rows.append((
            method, short(1000 * cell.value), short(1000 * (cell.spread or 0.0), 2), str(cell.n),
            short(cell.value / base), short(flops / 1e6),
            "-" if theirs is None else f"{theirs[2] / paper.IMAGES['kl'][2]:.0f}",
        ))  # fmt: skip
    return Table(
        "Cost of an image",
        ("method", "ms", "spread", "batch", "x KL sampler", "MFLOP", "paper's x"),
        tuple(rows),
    )


def _classes(cells: Cells) -> Table:
    digits = [d for d in range(10) if cells.methods(f"class_share_{d}")]
    rows = [
        (method, *(f"{100 * _value(cells, f'class_share_{d}', method):.1f}" for d in digits))
        for method in cells.methods("least_class_share")
    ]
    return Table("Classes, in per cent of the draws", ("method", *map(str, digits)), tuple(rows))


def _nets(cells: Cells) -> Table:
    rows = [
        (m, f"{_value(cells, 'parameters', m):,.0f}", f"{_value(cells, 'iterations', m):,.0f}")
        for m in cells.methods("parameters")
    ]
    return Table(
        "Networks and the steps of their training",
        ("network", "parameters", "steps"),
        tuple(rows),
    )
