"""What draws say of each number: mean, spread and quantiles, and nothing that supposes a Markov chain."""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float

from pushforward.checks import check_name
from pushforward.tables import html_table, text_table

QUANTILES = (5, 25, 50, 75, 95)  # in per cent

TITLES = ("mean", "sd", *(f"{q} %" for q in QUANTILES))


class Summary(Mapping[str, dict[str, float]]):
    """A row of figures for each number of a draw: `summary["theta[3]"]["mean"]`. Print it."""

    def __init__(self, columns: Mapping[str, Float[np.ndarray, " n"]]):
        """Summarise each column."""
        self.rows = {name: _figures(np.asarray(column, np.float64)) for name, column in columns.items()}
        self.num_draws = len(next(iter(columns.values())))

    def __getitem__(self, name: str) -> dict[str, float]:
        """Return the figures of one number, or say which name is nearest."""
        return dict(zip(TITLES, self.rows[check_name(name, self.rows)], strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _cells(self) -> list[list[str]]:
        return [[name, *(f"{figure:.4g}" for figure in row)] for name, row in self.rows.items()]

    def __repr__(self) -> str:
        return text_table((f"{self.num_draws:,} draws", *TITLES), self._cells())

    def _repr_html_(self) -> str:
        return html_table(f"{self.num_draws:,} draws", ("", *TITLES), self._cells())


def _figures(column: Float[np.ndarray, " n"]) -> list[float]:
    with np.errstate(all="ignore"):
        # One draw has no spread.
        sd = column.std(ddof=1) if len(column) > 1 else np.nan
        return [float(column.mean()), float(sd), *map(float, np.percentile(column, QUANTILES))]
