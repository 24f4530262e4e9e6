"""The study's rows, in the order in which they matter: references first, since others stand beside them."""

from reproduce.studies.covertype.settings import NOISE, SLOW, STAGES, Settings
from reproduce.studies.row import Row


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
