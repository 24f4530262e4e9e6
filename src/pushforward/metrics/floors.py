"""Metrics under one signature, and what an exact sampler scores: the figure to hold all others against.

So a study and its `floor` cannot differ in protocol: both call the same function by the same name.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import ExactTarget
from pushforward.checks import check_choice, check_count, check_key
from pushforward.metrics.ksd import ksd_imq_v
from pushforward.metrics.two_sample import sliced_w2

Protocol: TypeAlias = Callable[[Key[Array, ""], Float[Array, "n dim"], ExactTarget], Float[Array, ""]]
"""`protocol(key, draws, target) -> value`; a reference, where needed, is drawn at equal size."""


def against_exact(
    key: Key[Array, ""],
    draws: Float[Array, "n dim"],
    target: ExactTarget,
    *,
    distance: Callable[..., Float[Array, ""]],
    transform: Callable[[Float[Array, "n dim"]], Float[Array, "n dim"]] | None = None,
) -> Float[Array, ""]:
    """Return `distance(key, draws, exact)` with as many exact draws; `transform` both sides first."""
    key_exact, key_distance = jax.random.split(key)
    exact = exact_draws(key_exact, target, draws.shape[0])
    if transform is not None:
        draws, exact = transform(draws), transform(exact)
    return distance(key_distance, draws, exact)


@eqx.filter_jit
def exact_draws(key: Key[Array, ""], target: ExactTarget, n: int) -> Float[Array, "n dim"]:
    """Return exact draws; compiled, since floors ask for them a thousand times."""
    return target.sample(key, n)


PROTOCOLS: dict[str, Protocol] = {
    "ksd_imq_v": lambda key, draws, target: ksd_imq_v(draws, target),
    "sliced_w2": eqx.Partial(against_exact, distance=sliced_w2),
}


class Floor(NamedTuple):
    """The mean and the standard deviation of a metric over repeats of an exact sampler."""

    mean: float
    sd: float
    repeats: int


def floor(
    key: Key[Array, ""],
    metric: str | Protocol,
    target: ExactTarget,
    n: int,
    repeats: int = 20,
    checkpoints: int = 1,
) -> Floor:
    """Return what `n` exact draws score, over independent repeats.

    No metric here is 0 for a perfect sampler: the KSD's V-statistic has a diagonal, and two sets of exact
    draws differ (facts 2.2).

    **Arguments:**

    - `key`: each repeat takes draws, and where it needs one a reference, of its own.
    - `metric`: a name in `PROTOCOLS`, or a function `(key, draws, target) -> value`.
    - `target`, `n`: one that can be sampled exactly, and how many draws are judged at a time.
    - `repeats`: at least 2; 20 gives the mean to a quarter of the spread.
    - `checkpoints`: more than one where the best of so many is reported. The paper takes the lowest mean of
        50 checkpoints (facts 0, 5.2); with exact ones that is the minimum of 50 noisy means, below what any
        sampler has earned. The spread is that of the repeats at the chosen checkpoint.
    """
    check_key(key)
    if not isinstance(target, ExactTarget):
        raise TypeError(
            f"`target` must be an `ExactTarget`, one with `sample`; got {type(target).__name__}. "
            "A floor is what exact draws score: without them there is none."
        )
    repeats, n = check_count(repeats, "repeats", at_least=2), check_count(n, "n")
    checkpoints = check_count(checkpoints, "checkpoints")
    judge = metric if callable(metric) else PROTOCOLS[check_choice(metric, "metric", PROTOCOLS)]

    def once(key: Key[Array, ""]) -> float:
        key_draws, key_metric = jax.random.split(key)
        return float(judge(key_metric, exact_draws(key_draws, target, n), target))

    values = np.array([once(each) for each in jax.random.split(key, checkpoints * repeats)])
    rows = values.reshape(checkpoints, repeats)
    best = rows[np.argmin(rows.mean(axis=1))]
    return Floor(float(best.mean()), float(best.std(ddof=1)), repeats)
