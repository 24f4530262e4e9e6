"""The bars the study of Covertype was set before it was run, split by split: computed, not typed."""

from collections.abc import Callable
from typing import Any

from reproduce.records import Record
from reproduce.report.bars import Check, judged
from reproduce.report.table import Table


def bars_table(records: list[Record], target: str) -> Table:
    """Return a row per bar: whether it was met on every split, and the worst of them."""
    mine = [r for r in records if r.target == target]
    return Table(
        "Bars, met and missed" if target == "covertype" else f"Bars, met and missed ({target})",
        ("bar", "verdict", "worst split"),
        tuple(row[:3] for row in judged(_bars(mine))),
        "Set before the study was run; every split counts for itself.",
        wraps=True,
    )


def _bars(records: list[Record]) -> list[tuple[str, list[Check]]]:
    def each(metric: str, figure: Callable[[Record], float], limit: float, **options: Any) -> list[Check]:
        found = [r for r in records if r.metric == metric and r.method == "ours"]
        return [Check(f"split {r.seed}:", figure(r), limit, **options) for r in found]

    def gap(scale: float) -> Callable[[Record], float]:
        return lambda r: float("nan") if r.floor is None else scale * abs(r.value - r.floor)

    seconds = sum(r.value for r in records if r.metric == "row_seconds")
    memory = [r.value for r in records if r.metric == "peak_memory_gb"]
    return [
        ("ours: accuracy within 0.05 percentage points of NUTS's", each("accuracy", gap(100.0), 0.05)),
        ("ours: log predictive within 0.001 nats a row of NUTS's", each("log_predictive", gap(1.0), 0.001)),
        (
            "ours: mean error at most 0.1 of NUTS's standard deviation for 95 % of coordinates",
            each("mean_error", lambda r: r.value, 0.1),
        ),
        (
            "ours: standard deviation 0.9 to 1.1 of NUTS's for 95 % of coordinates (share of them)",
            each("sd_share", lambda r: r.value, 0.95, at_most=False),
        ),
        (
            "ours: at least 200 times faster than NUTS, per effective draw",
            each("speed_ratio", lambda r: r.value, 200.0, at_most=False),
        ),
        ("ours: trained within 10 minutes (seconds)", each("train_seconds", lambda r: r.value, 600.0)),
        ("the whole study within 3 hours (minutes)", [Check("", seconds / 60, 180.0)] if seconds else []),
        ("peak memory under 4 GB", [Check("", max(memory), 4.0)] if memory else []),
    ]
