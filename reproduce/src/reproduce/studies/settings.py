"""What the settings of all studies share."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pushforward.checks import check_count
from pushforward.recipe.methods import Method
from pushforward.recipe.records import Record

FEW = {"annealing.num_particles": 1024, "search.looks": 2**12}
"""Changes of a recipe for presets that only try things out: few particles, few places looked at for modes."""


@dataclass(frozen=True, kw_only=True)
class StudySettings(Record):
    """A preset.

    **Arguments:**

    - `preset`: names the settings in records.
    - `max_steps`: cuts every training short, to try a preset out.
    """

    preset: str
    max_steps: int | None = None

    def __post_init__(self):
        if self.max_steps is not None:
            check_count(self.max_steps, "max_steps")

    def steps(self, number: int) -> int:
        """Return a number of steps, cut short if so asked."""
        return number if self.max_steps is None else min(number, self.max_steps)


@dataclass(frozen=True, kw_only=True)
class FitSettings(StudySettings):
    """A preset of a study that calls `fit`.

    **Arguments:**

    - `recipe_changes`: of every recipe, by the names that `Recipe.replace` takes.
    """

    recipe_changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def asked(self, method: Method) -> Method:
        """Return a method with the changes of this preset, its training cut short if so asked."""
        changed = method.replace(**self.recipe_changes)
        return changed.replace(num_steps=self.steps(changed.recipe.training.num_steps))
