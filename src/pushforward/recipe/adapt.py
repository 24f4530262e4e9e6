"""Stage `adapt`: proposals that learn from their own weighted draws, where coordinates are few.

Adaptive importance sampling. A round draws from a mixture of t laws, weighs the draws of all rounds against
all proposals together (the deterministic mixture), and fits the next proposal to them. It asks for log
densities only, by one program, and needs no chains; where its weights stay unequal, annealing follows.
"""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.host import generator, normal_logs, out_of, placed, sampled
from pushforward.latents import NormalMixture
from pushforward.recipe.anneal import first_start
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.judge import good_for_maps
from pushforward.recipe.law import Split, hangs_together, stand_in
from pushforward.recipe.mixtures import fit_mixture
from pushforward.recipe.necks import along_necks
from pushforward.recipe.reweight import reweighed_by
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, known
from pushforward.recipe.table import Adapt, Recipe
from pushforward.weights import chosen_by, effective, log_sum, usual


def applies(state: State, recipe: Recipe) -> bool:
    """Where coordinates are few, and the normal law of one peak was not enough."""
    return state.peaks is not None and not state.good and state.dim <= recipe.adapt.most_dim


class Pool:
    """The draws of all rounds, with what each proposal says of each draw."""

    def __init__(self, numbers: Adapt, dim: int):
        self.numbers, self.dim = numbers, dim
        self.laws: list[tuple[np.ndarray, ...]] = []
        self.draws, self.values = np.zeros((0, dim)), np.zeros(0)
        self.logs = np.zeros((0, 0))
        """Log density of each proposal, a column, at each draw."""

    def propose(self, rng: np.random.Generator, law: NormalMixture) -> np.ndarray:
        """Draw from a mixture, with the tails of t laws."""
        self.laws.append(tuple(np.asarray(a, np.float64) for a in (law.weights, law.means, law.choleskys)))
        count, freedom = self.numbers.num_draws, self.numbers.freedom
        longer = np.sqrt(freedom / rng.chisquare(freedom, (count, 1)))
        return placed(rng, longer * rng.standard_normal((count, self.dim)), *self.laws[-1])

    def add(self, u: np.ndarray, values: np.ndarray) -> None:
        """Add the draws of the latest proposal, with the log density of the target there."""
        old = self._of(self.laws[-1], self.draws)[:, None]
        new = np.stack([self._of(law, u) for law in self.laws], axis=1)
        self.logs = np.concatenate([np.hstack([self.logs, old]), new])
        self.draws, self.values = np.concatenate([self.draws, u]), np.concatenate([self.values, values])

    def _of(self, law: tuple[np.ndarray, ...], u: np.ndarray) -> np.ndarray:
        return log_sum(normal_logs(u, *law, freedom=self.numbers.freedom))

    @property
    def log_weights(self) -> Float[np.ndarray, " n"]:
        """Of every draw, against all proposals together."""
        return self.values - log_sum(self.logs) + np.log(self.logs.shape[1])

    @property
    def fresh(self) -> float:
        """The efficiency of the latest proposal, by its own draws."""
        mine = slice(-self.numbers.num_draws, None)
        return effective(self.values[mine] - self.logs[mine, -1])


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Draw, weigh and fit in turn; yields draws and a law if weights become equal enough."""
    peaks, numbers = known(state.peaks), recipe.adapt
    key_draws, key_law = jax.random.split(key)
    rng, pool = generator(key_draws), Pool(numbers, state.dim)
    start = first_start(peaks, recipe.annealing)
    frame, law = start.frame, start.latent
    assert isinstance(law, NormalMixture)
    w, found, i = np.zeros(0), 0.0, 0
    for i in range(numbers.rounds):
        clock.observe(f"adaptive proposals, round {i + 1}")
        u = pool.propose(rng, law)
        pool.add(u, start.heights(state.target, u, recipe.search.tile))
        w = pool.log_weights
        if not np.isfinite(w.max()):
            return
        found = effective(w) * len(w)
        if pool.fresh > numbers.fresh and found > numbers.effective:
            break
        law = _next(rng, pool.draws, w, found, len(peaks.points), i, recipe)
    if found < numbers.enough or pool.fresh < 0.5 * numbers.fresh:
        return
    x, part = _kept(rng, out_of(frame, pool.draws), w, numbers)
    law, z, own = _judged(key_law, state, x, part, recipe)
    law = law._replace(latent=reweighed_by(law.latent, z, own, recipe.reweight))
    efficiency = usual(own, recipe.reweight.parts)
    row = {"log_z": float(log_sum(w)) - np.log(len(w)), "rounds": i + 1.0, "efficiency": efficiency}
    # A poor law of good draws: a map may follow them where no mixture does.
    one = hangs_together(law.latent, recipe.law)
    yield state.with_law(law, x, row, good=efficiency > numbers.good, one_normal=one)


def _judged(
    key: Key[Array, ""], state: State, x: np.ndarray, part: Split, recipe: Recipe
) -> tuple[Approximation, np.ndarray, np.ndarray]:
    """Return the law that stands best for draws, along necks if need be, with weighed draws of it."""
    key_law, key_judge = jax.random.split(key)
    rng, tile, parts = generator(key_judge), recipe.search.tile, recipe.reweight.parts

    def weighed(law: Approximation) -> tuple[Approximation, np.ndarray, np.ndarray]:
        z = sampled(rng, law.latent, recipe.adapt.judged)
        return law, z, law.weights(state.target, z, tile)

    plain = weighed(stand_in(key_law, x, recipe, known(state.peaks).points, state.laplace, part))
    if usual(plain[2], parts) > good_for_maps(state.dim, recipe.maps):
        return plain
    seen = along_necks(rng, state.target, x, recipe, float(np.mean(plain[2])))
    both = [plain] if seen is None else [plain, weighed(seen)]
    return max(both, key=lambda found: usual(found[2], parts))


def _next(
    rng: np.random.Generator, u: np.ndarray, w: np.ndarray, found: float, peaks: int, i: int, recipe: Recipe
) -> NormalMixture:
    """Return the mixture fitted to the weighted draws; weights of few effective draws are made more equal."""
    numbers, power = recipe.adapt, 1.0
    while effective(power * w) * len(w) < numbers.least and power > 1e-3:
        power *= 0.7
    rows = u[chosen_by(rng, power * w, numbers.rows)]
    most = max(1, int(effective(power * w) * len(w) / (recipe.law.rows_each * u.shape[1])))
    size = max(peaks, numbers.sizes[min(i + 1, len(numbers.sizes) - 1)])
    return fit_mixture(rng, rows, min(size, most), law=recipe.law)


def _kept(rng: np.random.Generator, x: np.ndarray, w: np.ndarray, numbers: Adapt) -> tuple[np.ndarray, Split]:
    """Return draws by their weights, and what parts them: no draw is both learnt from and judged by."""
    held_out = rng.random(len(x)) < 0.25
    quarter = numbers.num_kept // 4
    learnt = x[~held_out][chosen_by(rng, w[~held_out], numbers.num_kept - quarter)]
    judged = x[held_out][chosen_by(rng, w[held_out], quarter)]
    return np.concatenate([rng.permutation(learnt), judged]), lambda rows: (rows[:-quarter], rows[-quarter:])
