"""What a preset would do, without doing it."""

from collections import Counter

from reproduce.studies.hard.cases import case
from reproduce.studies.hard.rows import rows
from reproduce.studies.hard.settings import Settings


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows by method, and what each target is judged against."""
    todo = rows(settings)
    counts = Counter(row.method for row in todo)
    lines = [f"{len(todo)} rows on {len(settings.targets)} targets"]
    lines += [f"{method}: {number} rows" for method, number in counts.items()]
    return lines + [f"{name}: held against {case(name).truth}" for name in settings.targets]
