"""One target's judge: metrics of draws, each beside what exact draws score under the same protocol."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import ExactTarget
from pushforward.metrics import Protocol, against_exact, floor, sliced_w2
from pushforward.targets import get
from reproduce.metrics.distances import PROTOCOLS, in_asinh
from reproduce.metrics.modes import mode_weight_error
from reproduce.records import Record
from reproduce.studies.fitting import repeated
from reproduce.studies.row import Draw, Row
from reproduce.studies.two_d.settings import PUBLISHED, Settings


def _funnel_coordinates(x: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    """Take the wide coordinate by its magnitude, the neck as it is: tails count, and do not rule."""
    return jnp.concatenate([in_asinh(x[:, :1], 1.0, 1.0), x[:, 1:]], axis=1)


OURS: dict[str, Protocol] = {
    "sliced_w2_asinh": eqx.Partial(against_exact, distance=sliced_w2, transform=_funnel_coordinates),
    "mode_weight_error": lambda key, draws, target: mode_weight_error(draws, target),
}


class Judge:
    """Scores draws on one target; floors are made once and kept."""

    def __init__(self, name: str, settings: Settings):
        """Judge draws of the target of that name."""
        target = get(name)
        assert isinstance(target, ExactTarget)
        self.name, self.target, self.settings = name, target, settings
        # The Funnel's W2 is decided by its few widest draws: only many pairs have a mean.
        self._heavy = 3 if name == "funnel" else 1
        self._floors: dict[tuple[str, int], float] = {}
        self._key = Row("floor", name, 0).key("floor")

    def score(self, row: Row, metric: str, draw: Draw, n: int, repeats: int) -> Record:
        """Return a metric of `n` draws, over repeats with fresh draws and fresh references."""
        values = repeated(row.key(metric), self.protocol(metric), draw, self.target, n, repeats)
        return self.settings.record(row, metric, values, n=n, floor=self.floor(metric, n))

    def scores(self, row: Row, draw: Draw, *, pair_n: int | None = None) -> list[Record]:
        """Return all metrics but the paper's KSD; `pair_n` where there are fewer draws than asked for."""
        s, pairs = self.settings, self.settings.pairs
        pair_n = pair_n or s.pair_n
        found = [self.score(row, m, draw, min(s.u_n, pair_n), pairs) for m in ("ksd_imq_u", "ksd_rbf_u")]
        if self.name == PUBLISHED:
            # No sampler of its score exists, so there is no truth to be near to.
            return found
        found.append(self.score(row, "sliced_w2", draw, pair_n, self._heavy * pairs))
        found.append(self.score(row, "mmd", draw, min(s.mmd_n, pair_n), pairs))
        if self.name == "funnel":
            found.append(self.score(row, "sliced_w2_asinh", draw, pair_n, pairs))
        if self.name == "mog2":
            found.append(self.score(row, "mode_weight_error", draw, pair_n, pairs))
        return found

    def paper_ksd(self, row: Row, draw: Draw, repeats: int | None = None) -> Record:
        """Return the paper's KSD of a fixed sampler."""
        return self.score(row, "ksd_imq_v", draw, self.settings.ksd_n, repeats or self.settings.ksd_repeats)

    def protocol(self, metric: str) -> Protocol:
        """Return the protocol of that name."""
        return OURS.get(metric) or PROTOCOLS[metric]

    def floor(self, metric: str, n: int) -> float:
        """Return what exact draws score on average."""
        s = self.settings
        if (metric, n) not in self._floors:
            many = {"ksd_imq_v": 5 * s.ksd_repeats, "sliced_w2": self._heavy * s.floor_pairs}
            repeats = many.get(metric, s.floor_pairs)
            self._floors[metric, n] = floor(self._key, self.protocol(metric), self.target, n, repeats).mean
        return self._floors[metric, n]

    def selection_floor(self) -> float:
        """Return what exact draws score when the best of all checkpoints is reported."""
        s, place = self.settings, ("selection", self.settings.ksd_n)
        if place not in self._floors:
            found = floor(self._key, "ksd_imq_v", self.target, s.ksd_n, s.checkpoint_repeats, s.checkpoints)
            self._floors[place] = found.mean
        return self._floors[place]
