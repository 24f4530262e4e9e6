"""Distances that only the studies ask for, and every metric of theirs by name."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from pushforward import metrics
from pushforward.base import Target
from pushforward.kernels import IMQ, RBF, median, squared_distances
from pushforward.metrics import Protocol, against_exact
from pushforward.metrics.inputs import check_draws, check_pair
from pushforward.metrics.ksd import mean_of_pairs, mean_stein


def ksd_imq_u(draws: Float[Array, "n dim"], target: Target) -> Float[Array, ""]:
    """Return the U-statistic of the squared KSD with the IMQ kernel: its mean is 0 for exact draws.

    1/(n(n-1)) sum over i != j of k0(x_i, x_j): no square root, and it may be negative.
    """
    draws = check_draws(draws, dim=target.dim)
    return mean_stein(draws, target, IMQ(), off_diagonal=True)


def ksd_rbf_u(draws: Float[Array, "n dim"], target: Target, bandwidth: float = 0.25) -> Float[Array, ""]:
    """Return the U-statistic of the squared KSD with the kernel of the paper's appendix.

    There `k = exp(-r^2 / h^2)` without the factor 2, and h = 0.25 (facts 2.3): our `RBF` at
    h / sqrt(2). So narrow a kernel sees local shape and little else.
    """
    draws = check_draws(draws, dim=target.dim)
    kernel = RBF(jnp.asarray(bandwidth / 2**0.5, draws.dtype))
    return mean_stein(draws, target, kernel, off_diagonal=True)


def mmd(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Float[Array, ""]:
    """Return the unbiased estimate of the squared maximum mean discrepancy.

        MMD^2 = E k(x, x') + E k(y, y') - 2 E k(x, y)

    with `k` the mean of Gaussian kernels at a quarter to four times the median distance within
    the reference `y` (of its first 1,000 draws). Bounded kernels keep it finite whatever the
    tails. Its mean is 0 for equal laws, so it may be negative: no square root is taken.
    """
    return _mmd(*check_pair(x, y))


@eqx.filter_jit
def _mmd(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Float[Array, ""]:
    some = y[:1000]
    # The median of all pairs holds the zeros of the diagonal; with 100 draws or more it is the
    # median distance to within a percent, and the kernels span a factor of sixteen.
    typical = jnp.sqrt(jnp.maximum(median(squared_distances(some, some)), 1e-12))
    widest, halvings = RBF(4.0 * typical), 4

    def table(rows, columns):
        total = value = widest.gram(rows, columns)
        for _ in range(halvings):
            # Half the bandwidth is the fourth power: one exponential serves them all.
            value = (value * value) ** 2
            total = total + value
        return total / (halvings + 1)

    return (
        mean_of_pairs(table, x, x, off_diagonal=True)
        + mean_of_pairs(table, y, y, off_diagonal=True)
        - 2 * mean_of_pairs(table, x, y)
    )


def in_asinh(x: Float[Array, "n dim"], centre: ArrayLike, scale: ArrayLike) -> Float[Array, "n dim"]:
    """Return `asinh((x - centre) / scale)`: linear near the centre, logarithmic far out.

    The Funnel's first coordinate has sd 70 and log-normal tails, so that its sliced W2 is decided
    by a handful of draws; apply this to both sides first and every scale counts.
    """
    return jnp.arcsinh((x - jnp.asarray(centre)) / jnp.asarray(scale))


def mean_error(
    draws: Float[Array, "n dim"], reference: Target | Float[Array, "m dim"]
) -> Float[Array, " dim"]:
    """Return how far the mean of each coordinate is off, in standard deviations of the reference.

    That is a target that knows its moments, or draws to be trusted. Exact draws score `N(0, 1/n)`.
    """
    mean, sd = _moments(reference)
    draws = check_draws(draws, dim=mean.shape[0], at_least=1)
    return (jnp.mean(draws, axis=0) - mean) / sd


def sd_ratio(draws: Float[Array, "n dim"], reference: Target | Float[Array, "m dim"]) -> Float[Array, " dim"]:
    """Return the standard deviation of each coordinate over that of the reference: 1 is right."""
    mean, sd = _moments(reference)
    return jnp.std(check_draws(draws, dim=mean.shape[0]), axis=0, ddof=1) / sd


def _moments(reference: Target | Float[Array, "m dim"]) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    if not isinstance(reference, Target):
        reference = check_draws(reference, "reference")
        return jnp.mean(reference, axis=0), jnp.std(reference, axis=0, ddof=1)
    mean, covariance = getattr(reference, "mean", None), getattr(reference, "covariance", None)
    if mean is None or covariance is None:
        raise ValueError(
            "`reference` must be a target that knows its `mean` and `covariance`, or draws; "
            f"{type(reference).__name__} does not know them. Pass draws of a sampler you trust."
        )
    return mean, jnp.sqrt(jnp.diag(covariance))


PROTOCOLS: dict[str, Protocol] = {
    **metrics.PROTOCOLS,
    "ksd_imq_u": lambda key, draws, target: ksd_imq_u(draws, target),
    "ksd_rbf_u": lambda key, draws, target: ksd_rbf_u(draws, target),
    "mmd": eqx.Partial(against_exact, distance=lambda key, x, y: mmd(x, y)),
}
"""The metrics of the records, by name."""
