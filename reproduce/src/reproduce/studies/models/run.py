"""The study's rows, the reference of a model or one fit of it, and how each is run."""

from pathlib import Path

from reproduce.records import Record
from reproduce.studies.models.cases import CASES, REFERENCE
from reproduce.studies.models.judge import fit_row
from reproduce.studies.models.reference import reference_row
from reproduce.studies.models.settings import Settings
from reproduce.studies.row import Row
from reproduce.studies.running import Observe, Study, Work, watching
from reproduce.studies.store import Store


def rows(settings: Settings) -> list[Row]:
    """Return all rows: the references, one fit of every model, the other front ends, then the other seeds."""
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


WATCHED = ("rhat", "ess", "mean_error_max", "sd_error_max", "train_seconds", "verdict")


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    store = Store(folder, settings.study)

    def records_of(row: Row) -> list[Record]:
        if row.method == REFERENCE:
            return reference_row(row, settings, store)
        return fit_row(row, settings, store, observe)

    return Work(records_of, watching(*WATCHED), clear=store.clear)


run = Study("models", rows, _work, lambda settings: settings.how.recipe).run
