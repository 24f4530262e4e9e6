"""Training inside of a study: an interrupt ends the study, where alone it hands back what there is so far."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import jax
from jaxtyping import Array, Key

import pushforward as pf
from pushforward import Fit, Outcome
from pushforward.base import Target
from pushforward.recipe.methods import Method
from pushforward.training import LoopResult

Ended = TypeVar("Ended", Fit, LoopResult)


def fit_to_the_end(key: Key[Array, ""], target: Target, **choices: Any) -> Fit:
    """Fit, quietly, and hand back whatever came of it but an interruption."""
    return at_its_end(pf.fit(key, target, progress=False, throw=False, **choices))


@lru_cache(maxsize=1)
def annealed(
    build: Callable[[str], Target], name: str, seed: int, how: Method, budget: str | None = None
) -> Fit:
    """Return a fit that ends before any network: particles, and the mixture of normals that stands for them.

    The last one is kept: it depends on these arguments alone, and all methods of a target begin with it.
    """
    return at_its_end(pf.fit(jax.random.key(seed), build(name), method=how, budget=budget, progress=False))


def at_its_end(ended: Ended) -> Ended:
    """Return a training that was not interrupted; a sampler half trained is no row of a table."""
    if ended.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    return ended
