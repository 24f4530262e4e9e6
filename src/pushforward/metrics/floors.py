"""What an exact sampler scores: the figure to hold every other figure against."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import ExactTarget
from pushforward.checks import check_choice, check_count, check_key
from pushforward.metrics.protocols import PROTOCOLS, Protocol, exact_draws


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
) -> Floor:
    """Return what `n` exact draws score, over independent repeats.

    No metric here is 0 for a perfect sampler: the KSD's V-statistic has a diagonal, two sets of
    exact draws differ, and so do their mode counts (facts 2.2).

    **Arguments:**

    - `key`: each repeat takes draws, and where it needs one a reference, of its own.
    - `metric`: a name in `PROTOCOLS`, or a function `(key, draws, target) -> value`.
    - `target`, `n`: one that can be sampled exactly, and how many draws are judged at a time.
    - `repeats`: at least 2; 20 gives the mean to a quarter of the spread.
    """
    return floor_of_selection(key, metric, target, n, repeats, checkpoints=1)


def floor_of_selection(
    key: Key[Array, ""],
    metric: str | Protocol,
    target: ExactTarget,
    n: int,
    repeats: int = 20,
    checkpoints: int = 50,
) -> Floor:
    """Return what an exact sampler scores when, as in the paper, the best checkpoint is reported.

    There, each of 50 checkpoints is judged by the mean of 20 repeats, and the lowest mean is the result
    (facts 0, 5.2). With checkpoints that are all exact this takes the minimum of 50 noisy means: a score
    below `floor` that no sampler has earned. The spread is that of the repeats at the chosen checkpoint,
    which is what the paper prints.

    Arguments as in `floor`, and `checkpoints`: among how many the lowest is taken.
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
    means = values.reshape(checkpoints, repeats).mean(axis=1)
    best = values.reshape(checkpoints, repeats)[np.argmin(means)]
    return Floor(float(best.mean()), float(best.std(ddof=1)), repeats)
