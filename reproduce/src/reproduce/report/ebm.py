"""The study of an energy-based model of images, told: the paper's Table 4."""

import math

from reproduce.report.bars import Check
from reproduce.report.cells import Cells, Study, short, times
from reproduce.report.ebm_figures import film_figure, grid_figure, speed_figure
from reproduce.report.section import Section, Table, told

TARGET, TIME = "images", "seconds_per_image"
PAPER = {
    "langevin-250": (20.95, 0.0097, 0.8455),
    "langevin-200": (20.92, 0.0111, 0.6658),
    "langevin-150": (21.32, 0.0169, 0.5115),
    "langevin-100": (30.35, 0.0742, 0.3455),
    "langevin-50": (52.55, 0.2061, 0.1692),
    "kl": (22.29, 0.0045, 0.0012),
}
"""FID, KID and seconds as the paper prints them; its FID is of another classifier."""

INTRO = (
    "An energy `E_sigma = f / sigma` of MNIST (padded to 32 x 32, pixels from 0 to 1) by denoising score "
    "matching at noise levels from 0.3 to 3, log-uniform, the loss of the scores weighted by `sigma^3`. "
    "`langevin-K` draws from it by annealed Langevin dynamics with K evaluations, the last of which "
    "denoises; how much it moves images about, much at noise up to 0.8 and little above, was chosen among "
    "four schedules by the FID of 1,536 draws of 50 evaluations against training images. The one-shot "
    "samplers need one pass of a generator. `start` is a generator fitted to draws of the energy (never "
    "to the data), of 50 evaluations each, sorted into 64 kinds without labels: one latent says of which "
    "kind an image is, so that kinds have the shares that they have among those draws. It is fitted with "
    "an encoder, then with a critic that has the energy's own features and tells its draws from the "
    "sampler's of the same kind in noise, and by the first two moments of those features. `kl` goes on "
    "from there by KL alone: the score net learns what the sampler's score is more than the energy's own, "
    "at length before the sampler moves, and then takes two steps for each of the sampler's, which are "
    "small, and few. Noise levels weigh by `sigma^2` in it: without, it gets better over a hundred steps "
    "and then worse. `fisher` is the same, without that weight, by the projection identity, which needs "
    "neither a trace nor second derivatives of the score net. Rates, steps and that weight were chosen "
    "after some twenty trials of 1,200 steps at most, by the FID of 10,000 or 20,000 draws against "
    "training images; two earlier recorded runs of `kl` were without the weight, and missed the bar of "
    "FID. To try it came of seeing `fisher`, which leans to high noise, ahead of those on the test images "
    "too. `kl-plain` is the paper's loop, from nothing, at its rates. `kl-sobol` is `kl` with latents "
    "from a scrambled Sobol sequence, whose draws are no longer independent: kinds, say, have their "
    "shares in every set. FID and KID are of the features of our own classifier, against the 10,000 test "
    "images; the floor is what as many training images score. Both are noisy even on 5,000 images, mostly "
    "by the shares of digits in a set: means over sets of so many are compared, two for a row of Langevin "
    "draws and forty for a sampler, which had eight until it was seen how much these leave to chance. "
    "Rows had one set at first, of which the best is mostly the luckiest; the second was added when that "
    "was seen, and at last, since the best of five means of two sets is still lucky, twelve fresh sets of "
    "the row that is best by those. That one latent says of which kind an image is goes back to a look at "
    "what the FID of earlier samplers against these test images was made of: mostly wrong shares of "
    "digits."
)


def ebm(study: Study) -> Section:
    """Return the study's tables and figures; what was not run is left out."""
    cells = Cells(study.records)
    tables = (_bars(cells), _quality(cells), _speed(cells), _classes(cells), _nets(cells))
    figures = (grid_figure(study.arrays), film_figure(study.arrays), speed_figure(cells, TARGET))
    return told(study, "Sampling from an energy-based model of digits", INTRO, tables, figures)


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
        "All but the last two were set before the study was run. FID and KID of the sampler are means over "
        "sets of images. The best row is named by the mean of its two sets, and that lowest of five noisy "
        "means is too low; so fresh sets are drawn of that row, and the first two bars are against these. "
        "Those against the lowest mean, and against the lowest first set, are what stood here before there "
        "were fresh sets, and before there were two; the sampler, whose mean is of forty sets, has no such "
        "luck. With Sobol latents its draws are no longer independent, which those of the rows are.",
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
        theirs = PAPER.get(method)
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
        "FID and its multiple of the floor are of one set of images; then the mean over sets of as many, "
        "with the spread of single sets; KID is that mean too. "
        "FID of its shares is that of training images with a row's shares of digits: what it has above the "
        "floor is the price of those alone. "
        "Entropy of ten even classes: 2.303. The nearest training image is the median distance in pixels, "
        "and in brackets over that of test images: well below one would mean copies. The paper's figures are "
        "of another classifier: only ratios compare.",
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
        theirs = PAPER.get(method)
        rows.append((
            method, short(1000 * cell.value), short(1000 * (cell.spread or 0.0), 2), str(cell.n),
            short(cell.value / base), short(flops / 1e6),
            "-" if theirs is None else f"{theirs[2] / PAPER['kl'][2]:.0f}",
        ))  # fmt: skip
    return Table(
        "Cost of an image",
        ("method", "ms", "spread", "batch", "x KL sampler", "MFLOP", "paper's x"),
        tuple(rows),
        "All methods in turn, repeat by repeat, in one run; the fastest repeat at the fastest of the batches "
        "tried. Operations by the compiler's count; an evaluation is the gradient of the energy.",
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
        "Steps for one core and an afternoon; the paper takes a hundred thousand and more.",
    )
