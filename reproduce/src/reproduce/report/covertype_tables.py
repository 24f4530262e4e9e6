"""Tables of the study of Covertype that need no words of the paper: bars, noise, seconds, the reference."""

from reproduce.records import Record
from reproduce.report.bars import TITLE, Check, table_of
from reproduce.report.cells import Cells, in_order, short
from reproduce.report.section import Table

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
    return Table(titled("Seconds", target), ("method", *columns.values()), tuple(rows))


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


def bars_table(records: list[Record], target: str) -> Table:
    """Return a row per bar: whether it was met on every split, and the worst of them."""
    return table_of(_bars([r for r in records if r.target == target]), titled(TITLE, target))


EACH: tuple[tuple[str, str, float, float, bool], ...] = (
    ("accuracy within 0.05 percentage points of NUTS's", "accuracy", 100.0, 0.05, True),
    ("log predictive within 0.001 nats a row of NUTS's", "log_predictive", 1.0, 0.001, True),
    ("mean error at most 0.1 of NUTS's sd for 95 % of coordinates", "mean_error", 0.0, 0.1, True),
    ("sd 0.9 to 1.1 of NUTS's for 95 % of coordinates (share)", "sd_share", 0.0, 0.95, False),
    ("at least 200 times NUTS's speed an effective draw", "speed_ratio", 0.0, 200.0, False),
    ("trained within 10 minutes (seconds)", "train_seconds", 0.0, 600.0, True),
)
"""Bars of our method on every split: words, metric, scale of its gap to NUTS (0: itself), limit, at most."""


def figure(record: Record, scale: float) -> float:
    """Return a figure, or how far it is from its reference in units of `1 / scale`."""
    if scale == 0.0:
        return record.value
    return float("nan") if record.floor is None else scale * abs(record.value - record.floor)


def _bars(records: list[Record]) -> list[tuple[str, list[Check]]]:
    mine = [r for r in records if r.method == "ours"]
    bars = [
        (
            f"ours: {words}",
            [Check(f"split {r.seed}:", figure(r, scale), limit, low) for r in mine if r.metric == metric],
        )
        for words, metric, scale, limit, low in EACH
    ]
    seconds = sum(r.value for r in records if r.metric == "row_seconds")
    memory = [r.value for r in records if r.metric == "peak_memory_gb"]
    return [
        *bars,
        ("the whole study within 3 hours (minutes)", [Check("", seconds / 60, 180.0)] if seconds else []),
        ("peak memory under 4 GB", [Check("", max(memory), 4.0)] if memory else []),
    ]
