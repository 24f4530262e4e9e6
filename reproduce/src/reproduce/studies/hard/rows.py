"""The study's rows: one method on one target with one seed, in the order in which they need each other."""

import numpy as np

from reproduce.records import Record
from reproduce.studies.hard.cases import EXACT, RANDOM, case
from reproduce.studies.hard.settings import STUDY, Settings
from reproduce.studies.row import Row


def rows(settings: Settings) -> list[Row]:
    """Return all rows: the first seed of everything, then what the others add, then the cost of steps."""
    found: list[Row] = []
    for seed in range(settings.seeds):
        for target in settings.targets:
            if target in RANDOM:
                found += [Row("default", target, 0)] if seed == 0 else []
                continue
            if seed == 0 and case(target).truth != EXACT:
                found.append(Row("reference", target, 0))
            # The rivals come after the default, whose seconds they are given.
            found += [Row(method, target, seed) for method in ("default", "smc", "mixture", "nuts", "flow")]
    found += [Row("steps", f"gaussian_{dim}d", 0) for dim in settings.step_dims]
    return [row for row in found if row.method in settings.methods]


def record_of(
    settings: Settings,
    row: Row,
    metric: str,
    values: np.ndarray | float | int,
    *,
    n: int | None = None,
    floor: float | None = None,
    spread: float | None = None,
) -> Record:
    """Return a record of the mean and the spread of `values`."""
    values = np.atleast_1d(np.asarray(values, float))
    if spread is None and values.size > 1:
        spread = float(values.std(ddof=1))
    return Record(
        STUDY, settings.preset, row.method, row.target, metric, value=float(values.mean()), spread=spread,
        n=n, repeats=values.size, seed=row.seed, floor=floor,
    )  # fmt: skip
