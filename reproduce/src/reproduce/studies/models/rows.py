"""The study's rows: the reference of a model, or one fit of it through one front end."""

from reproduce.studies.models.cases import CASES, REFERENCE
from reproduce.studies.models.settings import Settings
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


def plan(settings: Settings) -> list[str]:
    """Return the rows for a reader."""
    words = {REFERENCE: "long NUTS"}
    return [f"{row}: {words.get(row.method, 'fit, check, compare')}" for row in rows(settings)]
