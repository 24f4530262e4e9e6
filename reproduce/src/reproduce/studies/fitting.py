"""Training inside of a study: an interrupt ends the study, where alone it hands back what there is so far."""

from typing import Any, TypeVar

from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.training import Fit, LoopResult, Outcome, fit

Ended = TypeVar("Ended", Fit, LoopResult)


def fit_to_the_end(key: Key[Array, ""], target: Target, **choices: Any) -> Fit:
    """Fit, quietly, and hand back whatever came of it but an interruption."""
    return at_its_end(fit(key, target, progress=False, throw=False, **choices))


def at_its_end(ended: Ended) -> Ended:
    """Return a training that was not interrupted; a sampler half trained is no row of a table."""
    if ended.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    return ended
