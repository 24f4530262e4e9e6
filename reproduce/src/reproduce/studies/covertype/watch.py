"""Accuracy while a method trains: the paper's figure; and what training cost without the looking."""

import time

import numpy as np

from pushforward.training.loop import Row as Line
from reproduce.studies.covertype.case import Store
from reproduce.studies.covertype.judge import Judge
from reproduce.studies.row import Draw, Row


class Watch:
    """Notes accuracy and log predictive of 100 draws whenever it is called; on the first split only."""

    def __init__(self, row: Row, judge: Judge):
        """Start the clock."""
        self.row, self.judge = row, judge
        self._cpu, self._looked, self._looked_cpu = time.process_time(), 0.0, 0.0

    def go_on(self, lines: tuple[Line, ...]) -> None:
        """Add to what the lines of an earlier run say."""
        if lines:
            self._cpu -= lines[-1]["cpu"]
            self._looked = lines[-1]["looked"]

    def __call__(self, draw: Draw) -> Line:
        """Look, and count the time of looking apart."""
        before, cpu_before, found = time.monotonic(), time.process_time(), {}
        cpu, looked = self.cpu(), self._looked
        if self.row.seed == 0:
            draws = np.asarray(draw(self.row.key("look"), self.judge.settings.predictive_draws))
            judged = self.judge.predict(draws)
            found = {"accuracy": judged.accuracy, "log_predictive": judged.log_predictive}
            self._looked += time.monotonic() - before
            self._looked_cpu += time.process_time() - cpu_before
        return {"cpu": cpu, "looked_before": looked, "looked": self._looked, **found}

    def cpu(self) -> float:
        """Return the processor's seconds since the start, without those of looking."""
        return time.process_time() - self._cpu - self._looked_cpu

    @property
    def looked(self) -> float:
        """Seconds of looking so far."""
        return self._looked

    def keep(self, store: Store, lines: list[Line]) -> None:
        """Keep rows of iteration, seconds, accuracy, log predictive for the figure."""
        curve = [
            (line["step"], line["seconds"] - line["looked_before"], line["accuracy"], line["log_predictive"])
            for line in lines
            if "accuracy" in line
        ]
        if curve:
            store.add({f"curve/{self.row.method}/{self.row.seed}": np.array(curve, np.float32)})
