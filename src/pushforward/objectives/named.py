"""The objectives of the paper and of its rivals, by name; each is imported when it is asked for."""

from collections.abc import Callable
from typing import Any

from pushforward import objectives
from pushforward.objectives.base import Objective


def _combined(settings: Any) -> Objective:
    share = settings.fisher_weight
    return objectives.Combined((objectives.KL(), NAMED["fisher"](settings)), (1.0 - share, share))


NAMED: dict[str, Callable[[Any], Objective]] = {
    "kl": lambda settings: objectives.KL(),
    "fisher": lambda settings: objectives.Fisher(settings.fisher_form, settings.sigma),
    "combined": _combined,
    "fisher_stein": lambda settings: objectives.FisherStein(),
    "exact_kl": lambda settings: objectives.ExactKL(),
    "ksd": lambda settings: objectives.KSD(),
    "steingan": lambda settings: objectives.SteinGAN(),
}
"""Each makes its objective of `Settings`."""
