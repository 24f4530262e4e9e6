"""The bars the study of hard targets was set before it was run, seed by seed: computed, not typed."""

import math
import statistics
from functools import partial
from typing import Any

from reproduce.records import Record
from reproduce.report.bars import Check
from reproduce.report.cells import Cells, short

OURS = "default"
RIVALS = ("nuts", "smc", "mixture", "flow")
LOGISTIC = ("breast_cancer", "breast_cancer_quadratic", "breast_cancer_hierarchical", "digits_3_8")
TO_BEAT = ("gmm40", "gmm40_50", "funnel_10")
FAILED = 3.0
"""A distance of more than this many floors is a failure, which the fit's own outcome must have flagged."""

GMM = ("gmm40", "gmm40_50")
EACH: tuple[tuple[str, str, tuple[str, ...], float], ...] = (
    ("Funnel-10: sd of the neck within 3 %", "neck_sd_error", ("funnel_10",), 0.03),
    ("Funnel-10: quantiles 1 to 99 % within 5 % of its sd", "neck_quantile_error", ("funnel_10",), 0.05),
    ("ManyWell-32: every double well within total variation 0.02", "tv_wells", ("many_well_32",), 0.02),
    ("ManyWell-32: every normal within total variation 0.02", "tv_normals", ("many_well_32",), 0.02),
    ("ManyWell-32: log Z error at most 0.1 with the noise head", "log_z_error", ("many_well_32",), 0.1),
    ("Gaussian in 1,000-D: every marginal sd within 5 %", "sd_error_max", ("gaussian_1000",), 0.05),
    ("Gaussian in 1,000-D: every mean within 0.05 sd", "mean_error_max", ("gaussian_1000",), 0.05),
    ("logistic posteriors: mean error at most 0.05 sd for 95 %", "mean_error_95", LOGISTIC, 0.05),
    ("logistic posteriors: sd within 5 % for 95 %", "sd_error_95", LOGISTIC, 0.05),
    ("a fit within 5 minutes", "train_seconds", (), 300.0),
)
"""Bars on a figure of each seed, which is to be low: words, metric, targets (none: all), limit."""


def bars(records: list[Record]) -> list[tuple[str, list[Check]]]:
    """Return every bar with its checks; none where nothing was measured."""

    def each(metric: str, targets: tuple[str, ...], limit: float, **how: Any) -> list[Check]:
        figure = how.pop("figure", lambda r: r.value)
        found = [r for r in _ours(records, metric) if not targets or r.target in targets]
        return [Check(f"{r.target} {r.seed}:", figure(r), limit, **how) for r in found]

    ratio = partial(each, "sliced_w2", figure=_multiple)
    return [
        ("GMM-40: all 40 modes", each("modes_found", GMM, 40.0, at_most=False)),
        ("GMM-40: EMC at least 0.999", each("emc", GMM, 0.999, at_most=False)),
        ("GMM-40 in 2-D: sliced W2 at most 1.1 x floor", ratio(("gmm40",), 1.1)),
        ("GMM-40 in 50-D: sliced W2 at most 1.25 x floor", ratio(("gmm40_50",), 1.25)),
        *((words, each(metric, targets, limit)) for words, metric, targets, limit in EACH),
        ("a training step's cost grows no faster than the dimension", _growth(records)),
        ("better than every rival, GMM-40 and Funnel-10 (theirs over ours)", _rivals(records, beat=True)),
        ("not worse than 1.1 x any rival on the rest (theirs over ours)", _rivals(records, beat=False)),
        ("random targets: no crash", _random(records, "crashed", 0)),
        ("random targets: no draw that is not finite", _random(records, "finite", 1)),
        ("random targets: median sliced W2 at most 1.5 x floor", _median(records)),
        (f"random targets: every failure (beyond {FAILED:g} x) flagged by the outcome", _flagged(records)),
        (f"the other targets: every failure (beyond {FAILED:g} x) flagged by the outcome", _named(records)),
    ]


def _ours(records: list[Record], metric: str) -> list[Record]:
    return [r for r in records if r.method == OURS and r.metric == metric]


def _multiple(record: Record) -> float:
    return record.value / record.floor if record.floor else math.nan


def _is_random(record: Record) -> bool:
    return record.target.startswith("random_")


def _growth(records: list[Record]) -> list[Check]:
    """Return each dimension's cost over the first one's, as a multiple of the dimensions' ratio."""
    found = sorted((dimension(r), r.value) for r in records if r.metric == "step_seconds")
    if len(found) < 2:
        return []
    first, base = found[0]
    return [Check(f"{dim}-D:", seconds / base * first / dim, 1.0) for dim, seconds in found[1:]]


def dimension(record: Record) -> int:
    """Return the dimension in the name of a target such as `gaussian_100d`."""
    return int(record.target.removeprefix("gaussian_").removesuffix("d"))


def distance_metric(target: str) -> str:
    """Return the distance by which methods are compared: the Funnel's without the rule of its tails."""
    return "sliced_w2_asinh" if target.startswith("funnel") else "sliced_w2"


def _rivals(records: list[Record], *, beat: bool) -> list[Check]:
    """Compare multiples of the floor, each at the draws a method has: few draws are not held against it."""
    cells, checks = Cells(records), []
    for target in cells.targets("sliced_w2"):
        if (target in TO_BEAT) != beat or target.startswith("random_"):
            continue
        metric = distance_metric(target)
        ours = cells.get(metric, OURS, target)
        for rival in RIVALS:
            theirs = cells.get(metric, rival, target)
            if ours is None or theirs is None:
                continue
            # A rival that broke down has lost.
            factor = math.inf if math.isnan(theirs.ratio) else theirs.ratio / ours.ratio
            checks.append(
                Check(f"{target} against {rival}:", factor, 1.0 if beat else 1 / 1.1, at_most=False)
            )
    return checks


def _random(records: list[Record], metric: str, wanted: int) -> list[Check]:
    found = [r for r in _ours(records, metric) if _is_random(r)]
    return [Check(f"{r.target}:", r.value, float(wanted), at_most=wanted == 0) for r in found]


def _multiples(records: list[Record]) -> dict[str, float]:
    return {r.target: _multiple(r) for r in _ours(records, "sliced_w2") if _is_random(r)}


def _median(records: list[Record]) -> list[Check]:
    found = _multiples(records)
    crashed = [r for r in _ours(records, "crashed") if _is_random(r) and r.value]
    values = [math.inf if math.isnan(v) else v for v in found.values()] + [math.inf] * len(crashed)
    return [Check("median:", statistics.median(values), 1.5)] if values else []


def _flagged(records: list[Record]) -> list[Check]:
    """Return a check per target: a failure that the outcome called good is a miss."""
    good = {r.target: r.value for r in _ours(records, "outcome_good")}
    return [_flag(target, multiple, good.get(target)) for target, multiple in _multiples(records).items()]


def _named(records: list[Record]) -> list[Check]:
    """Return a check per target and seed that are not of the random family."""
    good = {(r.target, r.seed): r.value for r in _ours(records, "outcome_good") if not _is_random(r)}
    return [
        _flag(f"{r.target} {r.seed}", _multiple(r), good[r.target, r.seed])
        for r in records
        if r.method == OURS and r.metric == distance_metric(r.target) and (r.target, r.seed) in good
    ]


def _flag(name: str, multiple: float, good: float | None) -> Check:
    failed = not multiple <= FAILED
    silent = failed and bool(good)
    words = f"{short(multiple)} x, {'not flagged' if silent else 'flagged' if failed else 'good'}"
    return Check(f"{name}:", float(silent), 0.5, words=words)
