"""The study's rows, in the order in which they matter."""

from reproduce.records import Record
from reproduce.studies.row import Row
from reproduce.studies.two_d.settings import (
    CHAINS,
    FAMILY,
    NEURAL,
    OF_PUBLISHED,
    PLAIN,
    PUBLISHED,
    SIX,
    Settings,
)


def rows(settings: Settings) -> list[Row]:
    """Return all rows: the main methods seed by seed, then the baselines, then the clock."""
    found: list[Row] = []

    def add(methods: tuple[str, ...], seed: int) -> None:
        found.extend(Row(method, target, seed) for target in SIX for method in methods)

    for seed in range(settings.seeds):
        add(FAMILY, seed)
        if seed == 0:
            add(("exact",), 0)
            found.extend(Row(method, PUBLISHED, 0) for method in OF_PUBLISHED)
            for method in CHAINS:
                add((method,), 0)
    for seed in range(settings.side_seeds):
        for method in (*NEURAL, *PLAIN):
            add((method,), seed)
    add(("speed",), 0)
    return [row for row in found if row.method in settings.methods and row.target in settings.targets]


def row_of(record: Record) -> Row:
    """Return the row a record came from; those of the clock name the method that was timed."""
    timed = record.metric in TIMED
    return Row("speed" if timed else record.method, record.target, record.seed or 0)


TIMED = ("seconds_per_1k_draws", "seconds_per_1m_draws", "ratio_to_kl", "break_even")
