"""What the settings of all studies share."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pushforward.checks import check_choice, check_count, check_positive
from pushforward.frozen import Record
from pushforward.recipe.methods import Method
from reproduce import records
from reproduce.studies.row import Row

FEW = {"annealing.num_particles": 1024, "search.looks": 2**12, "maps.good": 0.0}
"""Changes of a recipe for presets that only try things out: few particles, no maps of them, and few places
looked at for modes."""


@dataclass(frozen=True, kw_only=True)
class StudySettings(Record):
    """A preset, named in records, each of its numbers checked; `max_steps` cuts every training short."""

    study: ClassVar[str]
    choices: ClassVar[Mapping[str, Iterable[str]]] = {}  # what a field, or each of its entries, may be
    least: ClassVar[Mapping[str, int]] = {}
    """The least that a number may be where that is not one, or above zero for a real number."""

    preset: str
    max_steps: int | None = None

    def __post_init__(self):
        for name, known in self.choices.items():
            value = getattr(self, name)
            for each in (value,) if isinstance(value, str) else value:
                check_choice(each, name, known)
        for field in dataclasses.fields(self):
            value, least = getattr(self, field.name), self.least.get(field.name, 1)
            if field.type is float:
                check_positive(value, field.name, zero=least == 0)
            elif field.type is int or (field.type == int | None and value is not None):
                check_count(value, field.name, at_least=least)
            elif field.type == tuple[int, ...] and value is not None:
                for each in value:
                    check_count(each, field.name, at_least=least)

    def steps(self, number: int) -> int:
        """Return a number of steps, cut short if so asked."""
        return number if self.max_steps is None else min(number, self.max_steps)

    def record(self, row: Row, metric: str, values: Any, **more: Any) -> records.Record:
        """Return a record of the mean and the spread of `values`; `more` are other fields of it."""
        values = np.atleast_1d(np.asarray(values, float))
        if more.get("spread") is None and values.size > 1:
            more["spread"] = float(values.std(ddof=1))
        more = {"repeats": values.size, "seed": row.seed, **more}
        return records.Record(
            self.study, self.preset, row.method, row.target, metric, float(values.mean()), **more
        )

    def timing(self, row: Row, metric: str, times: Any, n: int) -> records.Record:
        """Return a record of a median and half the distance between the quartiles: clocks have outliers."""
        low, middle, high = np.quantile(times, [0.25, 0.5, 0.75])
        return self.record(row, metric, middle, spread=float(high - low) / 2, n=n, repeats=len(times))

    def figures(self, row: Row, values: Mapping[str, Any], **more: Any) -> list[records.Record]:
        """Return a record of each metric in `values`."""
        return [self.record(row, metric, value, **more) for metric, value in values.items()]


@dataclass(frozen=True, kw_only=True)
class FitSettings(StudySettings):
    """A preset of a study that fits; `recipe_changes` go into every recipe by `Recipe.replace`."""

    recipe_changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def asked(self, method: Method) -> Method:
        """Return a method with the changes of this preset, its training cut short if so asked."""
        changed = method.replace(**self.recipe_changes)
        return changed.replace(num_steps=self.steps(changed.recipe.training.num_steps))
