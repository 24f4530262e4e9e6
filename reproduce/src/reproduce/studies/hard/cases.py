"""The study's targets: what each is, what its truth is, and what is asked of draws of it."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax

from pushforward import targets
from pushforward.base import Target
from pushforward.checks import check_choice
from reproduce.targets import (
    breast_cancer,
    breast_cancer_hierarchical,
    breast_cancer_quadratic,
    digits_3_8,
    dw4,
    lj13,
    many_well,
    phi4,
    random_target,
    student_t_mixture,
)

EXACT, NUTS, TEMPERING = "exact draws", "long NUTS", "replica exchange"


class Case(NamedTuple):
    """One target, and how it is judged."""

    build: Callable[[], Target]
    asks: tuple[str, ...]
    """Families of metrics beside the two-sample distance: see `figures`."""
    truth: str = EXACT
    start_scale: float = 1.0
    """Where chains start: at the target's own spread, which is kinder to them than ignorance."""


def _large_gaussian() -> Target:
    return targets.correlated_gaussian(jax.random.key(0), 1000, 100.0)


CASES: dict[str, Case] = {
    "gmm40": Case(targets.gmm40, ("modes", "log_z"), start_scale=25.0),
    "gmm40_50": Case(partial(targets.gmm40, 50), ("modes", "log_z"), start_scale=25.0),
    "funnel_10": Case(targets.funnel_nd, ("neck", "log_z")),
    "funnel_100": Case(partial(targets.funnel_nd, 100), ("neck",)),
    "many_well_32": Case(many_well, ("wells", "moments", "log_z")),
    "gaussian_1000": Case(_large_gaussian, ("moments",)),
    "breast_cancer": Case(breast_cancer, ("moments",), NUTS),
    "breast_cancer_quadratic": Case(breast_cancer_quadratic, ("moments",), NUTS),
    "breast_cancer_hierarchical": Case(breast_cancer_hierarchical, ("moments",), NUTS),
    "digits_3_8": Case(digits_3_8, ("moments",), NUTS),
    "student_t_mixture": Case(student_t_mixture, ("modes",), start_scale=6.0),
    "phi4": Case(phi4, ("moments",), TEMPERING),
    "dw4": Case(dw4, ("particles",), TEMPERING, start_scale=2.0),
    "lj13": Case(lj13, ("particles",), TEMPERING, start_scale=2.0),
}
"""By name; `random_00` to `random_19` are the members of the random family."""

NUM_RANDOM = 20
RANDOM = tuple(f"random_{number:02d}" for number in range(NUM_RANDOM))
NAMES = (*CASES, *RANDOM)


def case(name: str) -> Case:
    """Return the case of that name."""
    check_choice(name, "targets", NAMES)
    if name in CASES:
        return CASES[name]
    return Case(partial(random_target, int(name.removeprefix("random_"))), ("units",))
