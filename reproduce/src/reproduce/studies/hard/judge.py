"""One target's judge: metrics of draws, each beside what exact or trusted draws score in the same way."""

from pushforward.base import ExactTarget, Target
from pushforward.metrics import Protocol, floor
from reproduce.records import Record
from reproduce.studies.fitting import repeated
from reproduce.studies.hard.figures import Pool, asked, distance, units_of
from reproduce.studies.hard.reference import reference_draws
from reproduce.studies.hard.settings import EXACT, Settings, case
from reproduce.studies.row import Draw, Row
from reproduce.studies.store import Store


class Judge:
    """Scores draws on one target; floors are made once and kept."""

    def __init__(self, name: str, settings: Settings, store: Store):
        """Judge draws of the target of that name; trusted draws are made, or read if they are there."""
        self.name, self.settings, self.case = name, settings, case(name)
        self.target: Target = self.case.build()
        if self.case.truth == EXACT:
            assert isinstance(self.target, ExactTarget)
            self.truth: ExactTarget = self.target
            self._halves = (self.truth, self.truth)
        else:
            self.truth = Pool(self.target, reference_draws(name, settings, store)["draws"])
            # Two choices from one pool share draws, and are nearer to each other than any others could be.
            self._halves = self.truth.halves()
        self._key = Row("floor", name, 0).key("floor")
        units = None
        if "units" in self.case.asks:
            units = units_of(self.truth.sample(self._key, 20_000))
        self._distances = distance(self.target, self.case.asks, units)
        self._asked = asked(self.target, self.case.asks)
        self._sampled = {*self._distances, "tv_distances"}
        self._floors: dict[tuple[str, int], float] = {}

    def scores(self, row: Row, draw: Draw, most: int | None = None) -> list[Record]:
        """Return all metrics; `most` is how many draws the method has, where that is limited."""
        s = self.settings
        pair_n, many = s.pair_n, min(s.moment_n, most or s.moment_n)
        if most is not None and most < pair_n:
            # Powers of two, so that chains of any length share a few floors and their programs.
            pair_n = 2 ** (most.bit_length() - 1)
        found = [self._score(row, m, p, draw, pair_n, s.pairs) for m, p in self._distances.items()]
        return found + [self._score(row, m, p, draw, many, 1) for m, p in self._asked.items()]

    def _score(self, row: Row, metric: str, protocol: Protocol, draw: Draw, n: int, repeats: int) -> Record:
        sampled = metric in self._sampled
        truth = self._halves[1] if sampled else self.truth
        if sampled and isinstance(truth, Pool):
            n = min(n, len(truth.pool))
        values = repeated(row.key(metric), protocol, draw, truth, n, repeats)
        floor = self._floor(metric, protocol, n, repeats)
        return self.settings.record(row, metric, values, n=n, floor=floor)

    def _floor(self, metric: str, protocol: Protocol, n: int, repeats: int) -> float:
        if isinstance(self.truth, Pool):
            # As many as there are; their errors fall with the root of it.
            n = min(n, self.truth.pool.shape[0] // 2)
        if (metric, n) not in self._floors:
            # Figures of many draws hardly vary, and take long.
            number = self.settings.floor_pairs if repeats > 1 else 2
            self._floors[metric, n] = self._floor_of(metric, protocol, n, number)
        return self._floors[metric, n]

    def _floor_of(self, metric: str, protocol: Protocol, n: int, number: int) -> float:
        if metric not in self._sampled:
            return floor(self._key, protocol, self.truth, n, number).mean
        one, other = self._halves
        return floor(self._key, lambda key, draws, _: protocol(key, draws, other), one, n, number).mean
