"""The study's rows: the reference of a model, or one fit of it through one front end."""

from reproduce.records import Record
from reproduce.studies.models.cases import CASES, REFERENCE
from reproduce.studies.models.settings import STUDY, Settings
from reproduce.studies.row import Row


def rows(settings: Settings) -> list[Row]:
    """Return all rows: the references, one fit of every model, the other front ends, then the other seeds.

    Other front ends get one seed: the density is the same, and so would be the fit but for rounding.
    """
    found = [Row(REFERENCE, name, 0) for name in CASES]
    for seed in range(settings.seeds):
        found += [Row("numpyro", name, seed) for name in CASES]
        if seed == 0:
            found += [Row(front, name, 0) for name, case in CASES.items() for front in case.others]
    return [row for row in found if row.method in settings.methods and row.target in settings.targets]


def record_of(
    settings: Settings,
    row: Row,
    metric: str,
    value: float | int,
    *,
    n: int | None = None,
    floor: float | None = None,
) -> Record:
    """Return a record of one figure."""
    return Record(
        STUDY, settings.preset, row.method, row.target, metric, value, n=n, repeats=1, seed=row.seed,
        floor=floor,
    )  # fmt: skip
