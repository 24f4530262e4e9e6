"""The study of an energy-based model of images, told: the paper's Table 4."""

import math
from collections.abc import Callable, Iterable

from reproduce.report import paper
from reproduce.report.bars import Check, table_of
from reproduce.report.cells import Cell, Cells, Study, multiple, short, times
from reproduce.report.ebm_figures import film_figure, grid_figure, speed_figure
from reproduce.report.section import Section, Table, told

TARGET, TIME = "images", "seconds_per_image"


def ebm(study: Study) -> Section:
    """Return the study's tables and figures; what was not run is left out."""
    cells = Cells(study.records)
    tables = (_bars(cells), _quality(cells), _speed(cells), _classes(cells), _nets(cells))
    figures = (grid_figure(study.arrays), film_figure(study.arrays), speed_figure(cells, TARGET))
    return told(study, tables, figures, answer=_answer(cells))


def _answer(cells: Cells) -> str:
    """Return in a sentence what one pass comes to, beside the energy's own draws."""
    rows = [c for m in _rows(cells) if (c := _compared(cells, "fid", m)) is not None]
    ours, plain = (_compared(cells, "fid", m) for m in ("kl", "kl-plain"))
    if not rows or ours is None or plain is None:
        return ""
    best = min(c.value for c in rows)
    speed = _value(cells, TIME, "langevin-250") / _value(cells, TIME, "kl")
    near, far = (times(c.value / best) for c in (ours, plain))
    return (
        f"Answer: `kl` comes to {near} the FID of the best row of Langevin draws, {speed:,.0f} times as fast "
        "as 250 evaluations, where it begins at a generator fitted to such draws. From nothing, as the "
        f"paper trains, it does not in the steps taken here ({far}).\n\n"
    )


def _value(cells: Cells, metric: str, method: str) -> float:
    value = cells.value(metric, method, TARGET)
    return math.nan if value is None else value


def _compared(cells: Cells, metric: str, method: str) -> Cell | None:
    """Return a figure as a mean over sets of images, if there are several."""
    return cells.get(f"{metric}_as_rows", method, TARGET) or cells.get(metric, method, TARGET)


def _of_sets(cells: Cells, metric: str, method: str, sets: str = "as_rows") -> str:
    cell = cells.get(f"{metric}_{sets}", method, TARGET)
    return "-" if cell is None else f"{short(cell.value)} ± {short(cell.spread or 0.0, 2)}"


def _rows(cells: Cells) -> list[str]:
    return [m for m in cells.methods("fid") if m.startswith("langevin-")]


def _bars(cells: Cells) -> Table:
    rows = _rows(cells)
    if not rows or cells.get("fid", "kl", TARGET) is None:
        return table_of([])
    seconds, bars = _value(cells, TIME, "kl"), _against_rows(cells, rows)

    def add(words: str, value: float, limit: float) -> None:
        bars.append((words, [Check("", value, limit, at_most=False)]))

    for number, limit in ((250, 700.0), (100, 288.0)):
        if f"langevin-{number}" in rows:
            ratio = _value(cells, TIME, f"langevin-{number}") / seconds
            add(f"wall-clock per image, {number} evaluations over one pass, at least {limit:g}", ratio, limit)
    rarest, accuracy = _value(cells, "least_class_share", "kl"), _value(cells, "accuracy", "classifier")
    add("KL sampler: every digit at least 4 % of the draws (the rarest)", rarest, 0.04)
    add("classifier: at least 99 % of the test set", accuracy, 0.99)
    start = _compared(cells, "fid", "start")
    for method, who in (("kl", "KL"), ("fisher", "Fisher")):
        cell = _compared(cells, "fid", method)
        if cell is not None and start is not None:
            words = f"{who} sampler trains: its FID over that of the start, below 1"
            bars.append((words, [_ratio(cell, start, 1.0)]))
    return table_of(bars)


def _ratio(ours: Cell, theirs: Cell, limit: float) -> Check:
    """Return a check of a ratio, with the standard error that both sides leave."""
    ratio = ours.value / theirs.value
    error = ratio * math.hypot(ours.error / ours.value, theirs.error / theirs.value)
    return Check("", ratio, limit, error=error)


def _against_rows(cells: Cells, rows: list[str]) -> list[tuple[str, list[Check]]]:
    """Return the sampler's FID and KID against those of the energy's rows, taken in three ways.

    First with independent latents, as the rows are, then with evenly spread ones, which chains cannot have.
    """

    def lowest(found: Iterable[Cell | None]) -> Cell | None:
        return min((c for c in found if c is not None), key=lambda c: c.value, default=None)

    fresh = cells.methods("fid_fresh")
    ways: dict[str, Callable[[str], Cell | None]] = {
        "the best of the energy's rows, on fresh sets (set later)": lambda m: lowest(
            cells.get(f"{m}_fresh", row, TARGET) for row in fresh
        ),
        "the lowest mean of a row": lambda m: lowest(_compared(cells, m, row) for row in rows),
        "the lowest first set of a row": lambda m: lowest(cells.get(m, row, TARGET) for row in rows),
    }
    bars = []
    for method, who in (("kl", "KL sampler"), ("kl-sobol", "KL sampler, Sobol latents (set later)")):
        for words, of_rows in ways.items():
            for metric, limit in (("fid", 1.065), ("kid", 1.0)):
                ours, theirs = _compared(cells, metric, method), of_rows(metric)
                if ours is not None and theirs is not None:
                    told = f"{who}: {metric.upper()} over {words}, at most {limit:g}"
                    bars.append((told, [_ratio(ours, theirs, limit)]))
    return bars


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
            multiple(_compared(cells, "kid", method)),
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
    return Table("Networks and the steps of their training", ("network", "parameters", "steps"), tuple(rows))
