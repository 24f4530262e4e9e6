"""The study's rows: one method on one target with one seed, in the order in which they need each other."""

from reproduce.studies.hard.cases import EXACT, RANDOM, case
from reproduce.studies.hard.settings import Settings
from reproduce.studies.row import Row, counted


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


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows by method, and what each target is judged against."""
    todo = rows(settings)
    lines = [f"{len(todo)} rows on {len(settings.targets)} targets", *counted(todo)]
    return lines + [f"{name}: held against {case(name).truth}" for name in settings.targets]
