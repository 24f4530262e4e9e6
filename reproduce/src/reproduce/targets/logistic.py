"""Bayesian logistic regression with a hierarchical prior: somebody's real posterior, of any size.

A row is a feature vector times its label (`+1` or `-1`), so that its log likelihood is
`log sigmoid(row . w)`. Rows of zeros add nothing and fill the last chunk.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float, Key
from numpy.typing import ArrayLike

from pushforward.checks import check_count, check_positive
from pushforward.parameters import Parameter, Parameters
from reproduce.targets.grid import Known
from reproduce.targets.logistic_data import laid_out
from reproduce.targets.logistic_mode import Peak, find_centre, find_peak


def by_one_pass(both: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """Return a function's value alone, whose gradient in the first argument is the slope of the same pass.

    The other arguments are data, hence constants: no derivative reaches them.
    """

    @jax.custom_jvp
    def value_of(*arguments):
        return both(*arguments)[0]

    def rule(primals, tangents):
        value, slope = both(*primals)
        moved = tangents[0]
        return value, jnp.zeros_like(value) if isinstance(moved, SymbolicZero) else slope @ moved

    # Symbolic zeros, or a tangent of zeros as large as the data would be made.
    value_of.defjvp(rule, symbolic_zeros=True)
    return value_of


def value_and_slope(
    weights: Float[Array, " weights"],
    origin: Float[Array, " weights"],
    slope: Float[Array, " weights"] | None,
    rows: Float[Array, "chunks size weights"],
    margins: Float[Array, "chunks size"],
) -> tuple[Float[Array, ""], Float[Array, " weights"]]:
    """Return `sum_i log sigmoid(row_i . w) - log sigmoid(margin_i)` and its gradient.

    `margins` are `row_i . origin`, where the sum is zero. The difference is taken row by row, before the sum:
    half a million terms of one sign would leave nothing of the last digits, which is where an accept step
    looks. With a known `slope`, the gradient at `origin`, only the change from it is summed. A chunk's worth
    of memory is all that is used, in derivatives as well.
    """
    moved = weights - origin

    @jax.checkpoint
    def chunk(carry, data):
        value, total = carry
        some, at_origin = data
        margin = at_origin + some @ moved
        value += jnp.sum(jax.nn.log_sigmoid(margin) - jax.nn.log_sigmoid(at_origin))
        missing = jax.nn.sigmoid(-margin)
        if slope is not None:
            missing -= jax.nn.sigmoid(-at_origin)
        return (value, total + missing @ some), None

    start = (jnp.zeros((), rows.dtype), jnp.zeros_like(weights) if slope is None else slope)
    if rows.shape[0] == 1:
        return chunk(start, (rows[0], margins[0]))[0]
    return jax.lax.scan(chunk, start, (rows, margins))[0]


log_likelihood = by_one_pass(value_and_slope)


class Hierarchical(Known):
    """What all forms of the posterior share: the point they are computed around, and the prior."""

    origin: Float[Array, " weights"]
    shape: float = eqx.field(static=True)
    rate: float = eqx.field(static=True)

    def log_prior(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log prior density of `(w, t)`, up to a constant."""
        weights, t = x[:-1], x[-1]
        square = weights @ weights
        return (0.5 * weights.size + self.shape) * t - jnp.exp(t) * (0.5 * square + self.rate)

    def facts(self, suffix: str = "") -> dict[str, Any]:
        """Return what another form of the same posterior has in common with this one."""
        return {"shape": self.shape, "rate": self.rate, "dim": self.dim, "name": self.name + suffix}


class BayesianLogisticRegression(Hierarchical):
    """Labels `y = +-1` given features `f`, weights `w` and their precision `alpha = exp(t)`, `x = (w, t)`.

        y_i ~ sigmoid(y_i f_i . w),   w | alpha ~ N(0, 1/alpha),   alpha ~ Gamma(shape, rate)

        log q(w, t) = sum_i log sigmoid(y_i f_i . w) - alpha/2 |w|^2 + d/2 t + shape t - rate alpha

    up to a constant (facts 6.1); the last `t` of `shape t` is the Jacobian of `alpha = exp(t)`. The
    coordinates are the weights in the order of the features, the bias if there is one, then `t`.

    The rows are arrays of the module, never constants of a compiled program. A score passes over them in
    chunks, so that memory is bounded however many rows and however many points there are.
    """

    rows: Float[Array, "chunks size weights"]
    """Features times label, a one appended for the bias; rows of zeros fill the last chunk."""
    margins: Float[Array, "chunks size"]
    slope: Float[Array, " weights"] | None  # set by `centred`: the gradient of the log likelihood at `origin`
    num_rows: int = eqx.field(static=True)
    bias: bool = eqx.field(static=True)

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        bias: bool = True,
        shape: float = 1.0,
        rate: float = 0.01,
        memory_mb: float = 16.0,
        name: str = "logistic_regression",
    ):
        """Take the data; scale the features to comparable ranges before (see `reproduce.data.MinMax`).

        **Arguments:**

        - `features`: shape `(rows, features)`, finite, no column constant.
        - `labels`: shape `(rows,)`, of two classes; the larger one counts as `+1`.
        - `bias`: append a column of ones; without it a model has a coordinate less (the paper's 55).
        - `shape`, `rate`: of the Gamma prior of the weights' precision.
        - `memory_mb`: megabytes that the scores of 128 points at once may take beside the data.
        - `name`: for reports.
        """
        laid = laid_out(features, labels, bias=bias, memory_mb=memory_mb)
        self.rows, self.margins, self.origin = laid
        self.shape, self.rate = check_positive(shape, "shape"), check_positive(rate, "rate")
        self.num_rows, self.slope, self.bias = np.shape(features)[0], None, bool(bias)
        self.dim, self.name = self.origin.size + 1, name

    @property
    def flat_rows(self) -> Float[Array, "rows weights"]:
        """The rows without those that fill the last chunk; a reshape of neighbouring axes moves nothing."""
        return self.rows.reshape(-1, self.dim - 1)[: self.num_rows]

    @property
    def parameters(self) -> Parameters:
        """The `weights` of the features, the `bias` if there is one, and the prior's precision `alpha`."""
        bias = (Parameter("bias"),) if self.bias else ()
        weights = Parameter("weights", (self.dim - 1 - len(bias),), dims=("feature",))
        return Parameters((weights, *bias, Parameter("alpha", kind="positive")))

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log posterior up to a constant: `log_likelihood` at `origin` counts as zero."""
        likelihood = log_likelihood(x[:-1], self.origin, self.slope, self.rows, self.margins)
        return likelihood + self.log_prior(x)

    def minibatch(self, key: Key[Array, ""], size: int) -> "LogisticMinibatch":
        """Return another target: `size` rows drawn with replacement, each counting `num_rows / size` times.

        Its score at any point is an unbiased estimate of this target's. Made inside a compiled step as
        well as outside.
        """
        size = check_count(size, "size")
        picked = jax.random.randint(key, (size,), 0, self.num_rows)
        return LogisticMinibatch(
            rows=self.rows.reshape(-1, self.dim - 1)[picked],
            margins=self.margins.reshape(-1)[picked],
            origin=self.origin,
            scale=self.num_rows / size,
            **self.facts("_minibatch"),
        )

    def peak(self) -> Peak:
        """Return the mode and the precision there, in double precision, by Newton's method on the host."""
        return find_peak(np.asarray(self.rows), self.shape, self.rate)

    def centre(self) -> Peak:
        """Return where the mass is: the mode of the weights, the prior's precision fitting them best."""
        return find_centre(np.asarray(self.rows), self.shape, self.rate)

    def centred(self, peak: Peak) -> "BayesianLogisticRegression":
        """Return the same target, computed around `peak`: near it, digits are lost in no sum.

        In single precision the score along directions that only the prior holds (two one-hot codes and a
        bias leave two of those) would be rounding error otherwise.
        """
        fields = (peak.margins, peak.origin, peak.slope)
        arrays = [jax.device_put(np.asarray(a, self.rows.dtype)) for a in fields]
        arrays[0] = arrays[0].reshape(self.margins.shape)
        return eqx.tree_at(
            lambda t: (t.margins, t.origin, t.slope), self, arrays, is_leaf=lambda v: v is None
        )


class LogisticMinibatch(Hierarchical):
    """Some rows of a `BayesianLogisticRegression`, each counting `scale` times: see its `minibatch`."""

    rows: Float[Array, "size weights"]
    margins: Float[Array, " size"]
    scale: float = eqx.field(static=True)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return an estimate of the full log density; its gradient is unbiased."""
        likelihood = log_likelihood(x[:-1], self.origin, None, self.rows[None], self.margins[None])
        return self.scale * likelihood + self.log_prior(x)
