import math

import pytest

from reproduce.records import Header, Record
from reproduce.report.bars import table_of
from reproduce.report.cells import Study
from reproduce.report.hard import hard
from reproduce.report.hard_bars import bars


def record(method, target, metric, value, floor=None, seed=0):
    return Record("hard", "cpu", method, target, metric, value, seed=seed, floor=floor)


def bar(records, words):
    return next(checks for text, checks in bars(records) if words in text)


def test_bars_are_computed_seed_by_seed():
    found = [
        record("default", "gmm40", "sliced_w2", 1.05, 1.0, 0),
        record("default", "gmm40", "sliced_w2", 1.3, 1.0, 1),
        record("default", "gmm40", "modes_found", 40.0),
    ]
    assert [c.met for c in bar(found, "in 2-D: sliced W2")] == [True, False]
    assert [c.met for c in bar(found, "all 40 modes")] == [True]
    table = table_of(bars(found))
    assert ("GMM-40: all 40 modes", "met") in [row[:2] for row in table.rows]
    assert any(row[1] == "missed on 1 of 2" for row in table.rows)


def test_step_cost_is_held_against_the_dimension():
    found = [
        record("steps", f"gaussian_{d}d", "step_seconds", s)
        for d, s in ((10, 1.0), (100, 9.0), (1000, 130.0))
    ]
    assert [c.met for c in bar(found, "training step")] == [True, False]
    told = hard(Study(Header("hard", "cpu", 0, "command", {}, 2), found, {}))
    assert [figure.name for figure in told.figures] == ["hard_steps.svg"]


@pytest.mark.parametrize(("theirs", "met"), [(2.0, True), (1.0, False), (math.nan, True)])
def test_rivals_are_compared_by_multiples_of_their_own_floors(theirs, met):
    found = [
        record("default", "gmm40", "sliced_w2", 3.0, 2.0),
        # Fewer draws: a larger floor.
        record("nuts", "gmm40", "sliced_w2", 4.0 * theirs, 4.0),
    ]
    assert [c.met for c in bar(found, "better than every rival")] == [met]
    assert bar(found, "not worse than 1.1") == []


def test_the_rest_may_be_a_tenth_worse():
    found = [record("default", "dw4", "sliced_w2", 1.08, 1.0), record("smc", "dw4", "sliced_w2", 1.0, 1.0)]
    assert [c.met for c in bar(found, "not worse than 1.1")] == [True]


def test_other_targets_must_flag_their_failures_too():
    found = []
    for name, metric, value, good in (
        ("dw4", "sliced_w2", 9.0, 0),
        ("lj13", "sliced_w2", 9.0, 1),
        ("gmm40", "sliced_w2", 1.1, 1),
        ("funnel_10", "sliced_w2_asinh", 1.1, 1),
        # What tails do to a Funnel's plain distance is no failure.
        ("funnel_10", "sliced_w2", 9.0, 1),
    ):
        found += [record("default", name, metric, value, 1.0), record("default", name, "outcome_good", good)]
    assert [c.met for c in bar(found, "the other targets: every failure")] == [True, False, True, True]


def test_random_targets_crash_fail_and_flag():
    found = []
    for number, (value, good) in enumerate([(1.0, 1), (1.2, 1), (9.0, 0), (9.0, 1)]):
        name = f"random_{number:02d}"
        found += [
            record("default", name, "sliced_w2", value, 1.0),
            record("default", name, "outcome_good", good),
            record("default", name, "crashed", 0),
            record("default", name, "finite", 1),
        ]
    assert all(c.met for c in bar(found, "no crash"))
    assert [c.met for c in bar(found, "random targets: every failure")] == [True, True, True, False]
    assert not bar(found, "median")[0].met
    found.append(record("default", "random_04", "crashed", 1))
    assert [c.met for c in bar(found, "no crash")] == [True] * 4 + [False]
