"""How each row of the study is run."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from reproduce.records import Header, Record
from reproduce.studies.row import Row
from reproduce.studies.running import Work, run_rows
from reproduce.studies.two_d.baselines import chain_row, exact_row
from reproduce.studies.two_d.family import annealed_row, default_row, sobol_row, thin_row
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.recipes import recipe
from reproduce.studies.two_d.rows import row_of, rows
from reproduce.studies.two_d.settings import STUDY, Settings
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


def run(
    settings: Settings,
    folder: str | Path,
    *,
    fresh: bool = False,
    command: str = "pushforward study two-d",
    observe: Callable[[str], None] = lambda words: None,
) -> Path:
    """Run all rows that `folder/two_d.jsonl` does not hold yet, and return its path.

    **Arguments:**

    - `settings`: of `PRESETS`, perhaps with changes.
    - `folder`: where the records go, with draws and curves for the figures beside them.
    - `fresh`: begin again, whatever is there.
    - `command`: goes into the header, for whoever wants to run it again.
    - `observe`: told one line per row.
    """
    path, store = Path(folder) / f"{STUDY}.jsonl", Store(Path(folder))
    header = Header.of_this_machine(STUDY, settings.preset, 0, command, recipe("default", settings).recipe)
    judge_of = cache(lambda name: Judge(name, settings))
    work = Work(
        lambda row: WORK.get(row.method, one_shot_row)(row, judge_of(row.target), store),
        _summary,
        row_of=row_of,
        clear=store.clear,
    )
    return run_rows(path, header, rows(settings), work, fresh=fresh, observe=observe)


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches, as multiples of their floors."""
    shown = [r for r in found if r.metric in ("ksd_imq_v", "sliced_w2") and r.floor]
    return "".join(f"{r.metric} {r.value / r.floor:.2f}x, " for r in shown if r.floor)
