"""A logistic posterior expanded at its mode: minibatches of what is left, with next to no noise.

A minibatch of 500 rows of half a million gives a score whose noise is thirty times the score itself. But
near the mode the log likelihood is a parabola up to a remainder, the parabola is known from all rows, and
only the remainder is estimated. It is of third order, and most of it is in few rows (those with a rare
feature), so that drawing rows by the size of their remainder leaves an error of a few per cent.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from scipy.special import expit

from pushforward.checks import check_count
from reproduce.targets.logistic import BayesianLogisticRegression, Hierarchical
from reproduce.targets.logistic_mode import Peak

UNIFORM_SHARE = 0.1  # of the draws fall on all rows alike, so that no row's weight can be enormous


class ExpandedMinibatch(Hierarchical):
    """The parabola of all rows and the remainder of some, each counting its weight.

    log L(w) = slope . d - 1/2 |root d|^2 + sum_i weight_i r_i(row_i . d),   d = w - origin
    r_i(e) = log sigmoid(m_i + e) - log sigmoid(m_i) - s_i e + 1/2 s_i (1 - s_i) e^2,  s_i = sigmoid(-m_i)
    """

    rows: Float[Array, "n weights"]
    margins: Float[Array, " n"]
    weights: Float[Array, " n"]
    slope: Float[Array, " weights"]
    root: Float[Array, "weights weights"]
    """A factor of the curvature and not the curvature: in single precision the flat directions survive."""

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log posterior, or an estimate of it whose gradient is unbiased."""
        moved = x[:-1] - self.origin
        parabola = self.slope @ moved - 0.5 * jnp.sum((self.root @ moved) ** 2)
        rest = self.weights @ _remainder(self.margins, self.rows @ moved)
        return parabola + rest + self.log_prior(x)


class ExpandedLogistic(ExpandedMinibatch):
    """The same posterior with all rows, of weight one; only its minibatches are worth sampling from."""

    probability: Float[Array, " n"]  # how likely each row is drawn
    threshold: Float[Array, " n"]
    alias: Int[Array, " n"]  # Walker's table: a place drawn evenly stands for itself or for its alias

    def minibatch(self, key: Key[Array, ""], size: int) -> ExpandedMinibatch:
        """Return another target with `size` rows drawn by their remainders; its scores are unbiased."""
        key_place, key_side = jax.random.split(key)
        place = jax.random.randint(key_place, (check_count(size, "size"),), 0, self.margins.size)
        stays = jax.random.uniform(key_side, (size,)) < self.threshold[place]
        picked = jnp.where(stays, place, self.alias[place])
        return ExpandedMinibatch(
            rows=self.rows[picked],
            margins=self.margins[picked],
            weights=1.0 / (size * self.probability[picked]),
            origin=self.origin,
            slope=self.slope,
            root=self.root,
            **self.facts("_minibatch"),
        )


def _remainder(margin: Float[Array, " n"], moved: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return what a row's log likelihood has beyond second order."""
    missing = jax.nn.sigmoid(-margin)
    gained = jax.nn.log_sigmoid(margin + moved) - jax.nn.log_sigmoid(margin)
    return gained - missing * moved + 0.5 * missing * (1.0 - missing) * moved**2


def expand(target: BayesianLogisticRegression, peak: Peak) -> ExpandedLogistic:
    """Expand `target` at its peak.

    Rows are drawn by the size of their remainder's score under the Laplace approximation: with
    `v = row . C row` the variance of a row's margin, about `|s (1 - s) (1 - 2 s)| v^(3/2)`.
    """
    rows = np.asarray(target.flat_rows)
    margins = peak.margins[: target.num_rows]
    missing = expit(-margins)
    factor = np.linalg.cholesky(peak.covariance[:-1, :-1])
    variance = np.concatenate([
        np.sum((np.asarray(part, np.float64) @ factor) ** 2, axis=1)
        for part in np.array_split(rows, max(1, len(rows) // 65536))
    ])  # fmt: skip
    curvature = missing * (1 - missing)
    # Where the third derivative vanishes the fourth does not: half of the curvature stands for it.
    size = curvature * (np.abs(1 - 2 * missing) + np.sqrt(variance)) * variance**1.5
    probability = (1 - UNIFORM_SHARE) * size / size.sum() + UNIFORM_SHARE / len(rows)
    values, vectors = np.linalg.eigh(peak.curvature)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    dtype = target.rows.dtype
    threshold, alias = alias_table(probability)
    arrays = {"margins": margins, "probability": probability, "threshold": threshold, "root": root}
    arrays |= {"slope": peak.slope, "origin": peak.origin, "weights": np.ones(len(rows))}
    return ExpandedLogistic(
        rows=jax.device_put(rows),
        alias=jax.device_put(alias),
        **{name: jax.device_put(np.asarray(a, dtype)) for name, a in arrays.items()},
        **target.facts(),
    )


def alias_table(
    probability: Float[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Return thresholds and aliases (Walker 1977, Vose 1991): a draw then costs two random numbers.

    A running sum of half a million probabilities would have lost the small ones in single precision.
    """
    scaled = probability / probability.sum() * len(probability)
    alias = np.arange(len(scaled), dtype=np.int32)
    poor = np.flatnonzero(scaled < 1.0).tolist()
    rich = np.flatnonzero(scaled >= 1.0).tolist()
    left = scaled.tolist()
    while poor and rich:
        low, high = poor.pop(), rich[-1]
        alias[low] = high
        left[high] -= 1.0 - left[low]
        if left[high] < 1.0:
            poor.append(rich.pop())
    threshold = np.array(left)
    # What rounding has left over stands for itself.
    threshold[poor + rich] = 1.0
    return threshold, alias
