"""The census: which basins the target has and how much mass each holds, found without the sampler."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.checks import check_key
from pushforward.frame import InFrame
from pushforward.host import out_of
from pushforward.mcmc.annealed import anneal
from pushforward.operations import one_by_one
from pushforward.recipe.peaks import Peaks, climb_from
from pushforward.recipe.search import find_peaks, tops_of
from pushforward.recipe.table import Annealing, Dimensions, Search
from pushforward.trust.basins import Basins, find_basins, join, unlinked
from pushforward.trust.settings import LIMITS, CheckSettings


@dataclass(frozen=True)
class Census:
    """Basins of a target and, where there are several, independent estimates of their masses.

    It depends on the target alone, so that one census may serve many checks: `check(..., census=census)`.
    """

    target: Target
    basins: Basins
    weights: Float[np.ndarray, "repeats k"] | None
    """Share of each basin in each repeat of tempered particles; `None` where there is one basin."""
    log_z: Float[np.ndarray, " repeats"] | None

    @staticmethod
    def take(key: Key[Array, ""], target: Target, settings: CheckSettings | None = None) -> "Census":
        """Walk uphill from starts over six orders of magnitude, and weigh the basins they find."""
        check_key(key)
        key_scout, key_weigh = jax.random.split(key)
        seen = one_by_one(target)
        return _weigh(key_weigh, seen, find_peaks(key_scout, seen), settings or CheckSettings())

    def extended(
        self, key: Key[Array, ""], draws: Float[np.ndarray, "n dim"], settings: CheckSettings
    ) -> "Census":
        """Return a census that also knows the basins above the draws: walks may have missed some."""
        starts = draws[np.linspace(0, len(draws) - 1, LIMITS.climbers).astype(int)]
        typical = 0.05 * np.median(np.abs(draws - np.median(draws, axis=0)), axis=0).max() + 1e-12
        numbers, steps = Search(num_walks=LIMITS.climbers), np.full((LIMITS.climbers, 1), typical)
        ends = climb_from(self.target, starts, steps, LIMITS.climb_steps, numbers)
        strangers = unlinked(self.target, self.basins.peaks, ends.points, ends.values)
        if not strangers.any():
            return self
        again = np.resize(ends.points[strangers], ends.points.shape)
        walks = climb_from(self.target, again, steps, LIMITS.climb_steps, numbers)
        found = tops_of(self.target, walks, numbers, Dimensions())
        if found is None:
            return self
        return _weigh(key, self.target, join(self.basins.peaks, found), settings)


def _weigh(key: Key[Array, ""], target: Target, peaks: Peaks, settings: CheckSettings) -> Census:
    """Carry particles from the law over all peaks to the target, several times, and count."""
    basins = find_basins(target, peaks)
    if basins.count == 1 or not basins.complete:
        return Census(target, basins, None, None)
    inside, weights, log_z = InFrame(target, basins.frame), [], []
    # Where a sweep is dear, fewer particles: their spread over repeats goes into the error all the same.
    num_particles = settings.num_particles // (1 if target.dim <= LIMITS.moderate_dim else 2)
    plan = Annealing(num_particles=num_particles, num_snapshots=1).plan(target.dim)
    for each in jax.random.split(key, settings.census_repeats):
        found = anneal(each, inside, basins.start, plan)
        x = out_of(basins.frame, np.asarray(found.draws, np.float64))
        weights.append(np.bincount(basins.of(x), minlength=basins.count) / len(x))
        log_z.append(found.log_z)
    return Census(target, basins, np.stack(weights), np.array(log_z))
