"""How each row of the study is run."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from reproduce.records import Record
from reproduce.studies.row import Row
from reproduce.studies.running import Observe, Study, Work
from reproduce.studies.two_d.baselines import chain_row, exact_row
from reproduce.studies.two_d.family import annealed_row, default_row, sobol_row, thin_row
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.recipes import recipe
from reproduce.studies.two_d.rows import row_of, rows
from reproduce.studies.two_d.settings import Settings
from reproduce.studies.two_d.speed import speed_row
from reproduce.studies.two_d.store import Store
from reproduce.studies.two_d.trained import flow_row, one_shot_row

WORK: dict[str, Callable[[Row, Judge, Store], list[Record]]] = {
    "default": default_row,
    "smc": annealed_row,
    "mixture": annealed_row,
    "default-thin": thin_row,
    "default-sobol": sobol_row,
    "exact": exact_row,
    "ld": chain_row,
    "hmc": chain_row,
    "svgd": chain_row,
    "flow": flow_row,
    "speed": speed_row,
}
"""How a row is run; all others train one of our networks and judge it."""


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    store, judge_of = Store(folder), cache(lambda name: Judge(name, settings))
    return Work(
        lambda row: WORK.get(row.method, one_shot_row)(row, judge_of(row.target), store),
        _summary,
        row_of=row_of,
        clear=store.clear,
    )


run = Study("two_d", rows, _work, lambda settings: recipe("default", settings).recipe).run


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches, as multiples of their floors."""
    shown = [r for r in found if r.metric in ("ksd_imq_v", "sliced_w2") and r.floor]
    return "".join(f"{r.metric} {r.value / r.floor:.2f}x, " for r in shown if r.floor)
