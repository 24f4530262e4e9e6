"""The verdicts, on figures made up so that each bar is met or missed by hand."""

import pytest

from reproduce.records import Record
from reproduce.report.covertype_tables import bars_table

GOOD = {
    "accuracy": (0.7580, 0.7581),
    "log_predictive": (-0.5127, -0.5128),
    "mean_error": (0.06, None),
    "sd_share": (1.0, None),
    "speed_ratio": (4000.0, None),
    "train_seconds": (200.0, None),
    "row_seconds": (900.0, None),
    "peak_memory_gb": (2.0, None),
}


def verdicts(**changes):
    figures = GOOD | changes
    records = [
        Record("covertype", "cpu", "ours", "covertype", metric, value, seed=split, floor=floor)
        for split in range(2)
        for metric, (value, floor) in figures.items()
    ]
    return [row[1] for row in bars_table(records, "covertype").rows]


def test_good_figures_meet_every_bar():
    assert verdicts() == ["met"] * 8


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (0, {"accuracy": (0.7580, 0.7587)}),
        (0, {"accuracy": (0.7580, None)}),
        (1, {"log_predictive": (-0.5127, -0.5140)}),
        (2, {"mean_error": (0.11, None)}),
        (2, {"mean_error": (float("nan"), None)}),
        (3, {"sd_share": (0.94, None)}),
        (4, {"speed_ratio": (150.0, None)}),
        (5, {"train_seconds": (601.0, None)}),
        (6, {"row_seconds": (6000.0, None)}),
        (7, {"peak_memory_gb": (4.1, None)}),
    ],
)
def test_each_bar_can_be_missed(place, change):
    found = verdicts(**change)
    assert found[place].startswith("missed")
    assert sum(verdict == "met" for verdict in found) == 7
