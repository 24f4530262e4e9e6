"""Tables of the study of Covertype that need no words of the paper: noise, seconds, the reference."""

from reproduce.report.cells import Cells, in_order, short
from reproduce.report.table import Table

ORDER = (
    *("nuts", "laplace", "ours", "kl", "fisher", "steingan", "steingan-frame", "svgd", "svgd-frame"),
    *("sgld", "sgld-scaled", "sgld-frame", "dsvi", "dsvi-frame", "ours-plain-large", "ours-plain"),
)


def titled(words: str, target: str) -> str:
    """Return a title that names the target, unless it is the main one."""
    return words if target == "covertype" else f"{words} ({target})"


def noise(cells: Cells, target: str) -> Table:
    """Return how noisy scores of minibatches are, plain and expanded."""
    rows = []
    metrics = [m for m in cells.metrics() if m.startswith("score_noise_")]
    for metric in sorted(metrics, key=lambda m: int(m.rsplit("_", 1)[1])):
        cell = cells.get(metric, "noise", target)
        if cell is not None:
            _, _, kind, size = metric.split("_")
            rows.append((f"{kind}, {int(size):,} rows", short(cell.value), short(cell.spread)))
    return Table(
        titled("The noise of minibatch scores", target),
        ("estimate", "noise", "worst coordinate"),
        tuple(rows),
        "Standard deviation of the estimate's error at posterior draws, in the Laplace frame, where the "
        "score itself has standard deviation one. Expanded: the parabola at the mode from all rows, and a "
        "minibatch of what is left, rows drawn by the size of their remainders. What the noise does to the "
        "posterior's spread: `ours-plain` and `ours-plain-large` above are our recipe with plain "
        "minibatches, the latter of twenty times as many rows.",
    )


def speed(cells: Cells, target: str) -> Table:
    """Return what training and draws cost, and when training has paid for itself."""
    columns = {
        "train_seconds": "training",
        "train_cpu_seconds": "training, processor",
        "seconds_per_100_draws": "100 draws, processor",
        "speed_ratio": "times NUTS, 100 at once",
        "speed_ratio_many": "times NUTS, many at once",
        "break_even": "break-even, draws",
    }
    methods = in_order(cells.methods("train_seconds"), ORDER)
    rows = [(method, *(short(cells.value(name, method, target)) for name in columns)) for method in methods]
    return Table(
        titled("Seconds", target),
        ("method", *columns.values()),
        tuple(rows),
        "The first column is by the clock on the wall, of a machine that may have had other work; all others "
        "are seconds of the processor. NUTS: seconds of 100 effective draws (median bulk ESS over the "
        "coordinates, by ArviZ), and of the whole run as training. Others: 100 independent draws in one "
        "call. Break-even: effective draws for which NUTS takes as long as our training.",
    )


def reference(cells: Cells, target: str) -> Table:
    """Return how well NUTS itself did."""
    rows = []
    for metric, words in (
        ("ess", "bulk ESS, median of coordinates"),
        ("rhat", "largest R-hat"),
        ("acceptance", "acceptance"),
        ("divergent", "share of divergent transitions"),
        ("leapfrog_steps", "gradients a transition"),
        ("seconds_per_effective_draw", "seconds an effective draw"),
    ):
        cell = cells.get(metric, "nuts", target)
        if cell is not None:
            rows.append((words, short(cell.value), short(cell.worst)))
    return Table(
        titled("NUTS on all of the data", target), ("figure", "mean over splits", "largest"), tuple(rows)
    )
