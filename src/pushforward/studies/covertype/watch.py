"""Accuracy while a method trains: the paper's figure."""

import time

import numpy as np

from pushforward.studies.covertype.judge import Draw, Judge
from pushforward.studies.covertype.rows import Row
from pushforward.studies.covertype.store import Store
from pushforward.training.loop import Row as Line


class Watch:
    """Notes accuracy and log predictive of 100 draws whenever it is called; on the first split only."""

    def __init__(self, row: Row, judge: Judge):
        """Start the clock."""
        self.row, self.judge = row, judge
        self.started, self.seconds = time.monotonic(), 0.0
        self.curve: list[tuple[float, float, float]] = []

    def __call__(self, draw: Draw) -> Line:
        """Look, and count the time of looking apart."""
        if self.row.split == 0:
            before = time.monotonic()
            draws = np.asarray(draw(self.row.key("look"), self.judge.settings.predictive_draws))
            found = self.judge.predict(draws)
            self.curve.append((before - self.started - self.seconds, found.accuracy, found.log_predictive))
            self.seconds += time.monotonic() - before
        return {}

    def keep(self, store: Store, steps: list) -> None:
        """Keep rows of iteration, seconds, accuracy, log predictive for the figure."""
        if self.curve:
            lines = [(step, *line) for step, line in zip(steps, self.curve, strict=True)]
            store.add({f"curve/{self.row.method}/{self.row.split}": np.array(lines, np.float32)})
