"""The study's rows, references first, and how each is run."""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from reproduce.posterior import RECIPE
from reproduce.records import Record
from reproduce.studies.covertype.case import Case, Store, load, peak_memory_gb
from reproduce.studies.covertype.judge import Judge
from reproduce.studies.covertype.reference import nuts_row
from reproduce.studies.covertype.settings import NOISE, SLOW, STAGES, Settings
from reproduce.studies.covertype.work import baseline_row, laplace_row, noise_row, ours_row
from reproduce.studies.row import Row, counted
from reproduce.studies.running import Observe, Study, Work, watching


def rows(settings: Settings) -> list[Row]:
    """Return all rows, stage by stage and in each split by split."""
    return [
        Row(method, target, number)
        for target in settings.targets
        for stage in STAGES
        for number in range(settings.splits)
        for method in stage
        if method in settings.methods and number < splits_of(method, settings)
    ]


def splits_of(method: str, settings: Settings) -> int:
    """Return on how many splits a method is run."""
    if method in SLOW:
        return min(settings.slow_splits, settings.splits)
    return 1 if method in NOISE else settings.splits


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows, then the exact sizes of every network."""
    s, todo, dim = settings, rows(settings), 56 if settings.targets[0] == "covertype" else 55
    assert RECIPE.depth is not None
    paper = linear_maps(s.paper_latents, s.paper_width, 3, dim)
    score = linear_maps(dim, s.paper_width, 3, dim)
    ours = linear_maps(dim, RECIPE.width, RECIPE.depth, 2 * dim)
    return [
        f"{len(todo)} rows on {s.splits} splits, {dim} coordinates",
        *counted(todo),
        f"ours: {ours:,} parameters in the sampler",
        *(f"{m}: {paper:,} parameters in the sampler, {score:,} in the score net" for m in ("kl", "fisher")),
        f"steingan: {paper:,} parameters in the sampler",
    ]


def linear_maps(in_size: int, width: int, depth: int, out_size: int) -> int:
    """Return the parameters of `depth` hidden layers, weights and biases."""
    sizes = [in_size, *[width] * depth, out_size]
    return sum((a + 1) * b for a, b in pairwise(sizes))


WORK: dict[str, Callable[[Row, Case, Judge, Store], list[Record]]] = {
    "laplace": laplace_row,
    "nuts": nuts_row,
    "ours": ours_row,
    "ours-plain": ours_row,
    "ours-plain-large": ours_row,
    "noise": noise_row,
}
"""How a row is run; all others are methods of the paper."""

WATCHED = ("accuracy", "log_predictive", "mean_error", "mean_share", "sd_share", "iterations")


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    data, store = load(settings), Store(folder)

    @lru_cache(maxsize=1)
    def judge_of(target: str, number: int) -> tuple[Case, Judge]:
        case = Case(data, target, number, settings)
        return case, Judge(case, store, settings)

    def records_of(row: Row) -> list[Record]:
        case, judge = judge_of(row.target, row.seed)
        found = WORK.get(row.method, baseline_row)(row, case, judge, store)
        return [*found, settings.record(row, "peak_memory_gb", peak_memory_gb())]

    return Work(records_of, watching(*WATCHED), clear=store.clear, after=store.forget)


run = Study("covertype", rows, _work, lambda settings: RECIPE).run
