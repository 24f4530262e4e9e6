"""A logistic posterior in blocks of rows that share their indicators: the same sums for less traffic.

Most columns of a table with coded categories are zeros and ones, and rows of one code share all of them.
Sorted by those columns and cut into blocks, such rows keep them once a block; a pass over half a million rows
then reads the ten columns of measurements and little else.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit

from reproduce.targets.logistic import BayesianLogisticRegression, Hierarchical, by_one_pass
from reproduce.targets.logistic_mode import Peak

BLOCK, CHUNK = 128, 32_768  # rows that share their indicators, and rows that are worked through at a time
FARTHEST = 80.0  # margins that fell by more have a likelihood of zero; their exponential would overflow


class BlockedLogistic(Hierarchical):
    """The same posterior around a peak, for passes over all rows.

    With `e` the change of a row's margin and `s = sigmoid(-margin)` at the peak, no digit is lost near it:

        log sigmoid(m + e) - log sigmoid(m) = - log(1 + s E),   E = exp(-e) - 1
        sigmoid(-m - e) - sigmoid(-m)       = s (1 - s) E / (1 + s E)
    """

    own: Float[Array, "chunks own size"]  # columns that every row has for itself, times the label
    shared: Float[Array, "chunks blocks shared"]
    """Columns that a block of rows has in common, times their label."""
    missing: Float[Array, "chunks size"]
    """`s`; zero for rows that only fill a block up, so that they add nothing."""
    place: Float[Array, "weights weights"]  # the permutation that puts the weights of `own` first
    slope: Float[Array, " weights"]

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log posterior up to a constant; the likelihood at the peak counts as zero."""
        moved = x[:-1] - self.origin
        gained = _gain(self.place @ moved, self.own, self.shared, self.missing)
        return gained + self.slope @ moved + self.log_prior(x)


def in_blocks(target: BayesianLogisticRegression, peak: Peak) -> BlockedLogistic:
    """Sort the rows of `target` into blocks, and compute them around `peak`."""
    rows = np.asarray(target.flat_rows)
    columns = np.abs(rows)
    # A column that has one value beside zero, up to the label's sign, is an indicator; the bias is one.
    top = columns.max(axis=0)
    is_code = ((columns == 0) | (columns == top)).all(axis=0)
    order, starts = _grouped(rows[:, is_code])
    filled = _fill(order, starts)
    held = filled >= 0
    missing = np.where(held, expit(-peak.margins[: target.num_rows])[filled], 0.0)
    own = np.where(held[:, None], rows[:, ~is_code][filled], 0.0)
    shared = rows[:, is_code][filled[::BLOCK]]
    place = np.eye(target.dim - 1)[np.concatenate([np.flatnonzero(~is_code), np.flatnonzero(is_code)])]
    size = min(CHUNK, len(filled))
    arrays = {
        "own": np.swapaxes(_in_chunks(own, size), 1, 2),
        "shared": _in_chunks(shared, size // BLOCK),
        "missing": _in_chunks(missing, size),
        "place": place,
        "origin": peak.origin,
        "slope": peak.slope,
    }
    dtype = target.rows.dtype
    return BlockedLogistic(
        **{name: jax.device_put(np.ascontiguousarray(a, dtype)) for name, a in arrays.items()},
        **target.facts(),
    )


def _grouped(codes: Float[np.ndarray, "rows shared"]) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of the rows in which equal codes stand together, and where each kind begins."""
    if codes.shape[1] == 0:
        return np.arange(len(codes)), np.zeros(1, int)
    # A few bytes a row that are equal where the codes are: signs and zeros, packed.
    bits = np.concatenate([np.packbits(codes > 0, axis=1), np.packbits(codes < 0, axis=1)], axis=1)
    kinds = np.unique(bits, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(kinds, kind="stable")
    return order, np.flatnonzero(np.diff(kinds[order], prepend=-1))


def _fill(order: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return row numbers with every kind of row filled up to whole blocks by `-1`."""
    groups = np.split(order, starts[1:])
    return np.concatenate([np.pad(g, (0, -len(g) % BLOCK), constant_values=-1) for g in groups])


def _in_chunks(rows: np.ndarray, size: int) -> np.ndarray:
    """Return rows in chunks of one size, the last filled up with zeros."""
    whole = np.pad(rows, [(0, -len(rows) % size), *[(0, 0)] * (rows.ndim - 1)])
    return whole.reshape(len(whole) // size, size, *rows.shape[1:])


def _gain_and_slope(
    moved: Float[Array, " weights"],
    own: Float[Array, "chunks own size"],
    shared: Float[Array, "chunks blocks shared"],
    missing: Float[Array, "chunks size"],
) -> tuple[Float[Array, ""], Float[Array, " weights"]]:
    """Return the log likelihood's change beyond `slope . moved`, and its gradient."""
    mine, common = moved[: own.shape[1]], moved[own.shape[1] :]

    def chunk(carry, data):
        value, own_slope, shared_slope = carry
        some, codes, s = data
        blocks = codes.shape[0]
        e = (mine @ some).reshape(blocks, BLOCK) + (codes @ common)[:, None]
        s = s.reshape(blocks, BLOCK)
        near = jnp.maximum(e, -FARTHEST)
        grown = s * jnp.expm1(-near)
        # Less the linear part, which `slope` holds for all rows at once.
        value += jnp.sum(jnp.where(s > 0, e - near, 0.0) - jnp.log1p(grown) - s * e)
        change = (1.0 - s) * grown / (1.0 + grown)
        # A sum and not a product of matrices, for which a few points are too narrow.
        own_slope += jnp.sum(some * change.reshape(-1), axis=1)
        shared_slope += jnp.sum(change, axis=1) @ codes
        return (value, own_slope, shared_slope), None

    start = (jnp.zeros((), own.dtype), jnp.zeros_like(mine), jnp.zeros_like(common))
    (value, own_slope, shared_slope), _ = jax.lax.scan(chunk, start, (own, shared, missing))
    return value, jnp.concatenate([own_slope, shared_slope])


_gain = by_one_pass(_gain_and_slope)
