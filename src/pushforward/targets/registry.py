"""Every built-in target by name: what the command line lists, fits and studies."""

from collections.abc import Callable

import jax

from pushforward.base import Target
from pushforward.checks import check_choice
from pushforward.targets.donut import donut
from pushforward.targets.funnel import funnel, funnel_nd, published_funnel
from pushforward.targets.gaussian import Gaussian, correlated_gaussian, gaussian
from pushforward.targets.lattice import phi4
from pushforward.targets.mixture import gmm40, mog2
from pushforward.targets.particles import dw4, lj13
from pushforward.targets.rezende import rezende1, rezende2, rezende3, rezende4
from pushforward.targets.student_t import student_t, student_t_mixture
from pushforward.targets.warped import banana, rosenbrock, squiggle
from pushforward.targets.wells import double_well, many_well


def _correlated_gaussian(dim: int = 10) -> Gaussian:
    """Return a Gaussian of condition number 100, turned at random; `dim=1000` is the study's largest."""
    return correlated_gaussian(jax.random.key(0), dim)


TARGETS: dict[str, Callable[[], Target]] = {
    # The paper's six, and the fifth as its runs saw it.
    "gaussian": gaussian,
    "mog2": mog2,
    "rosenbrock": rosenbrock,
    "donut": donut,
    "funnel": funnel,
    "squiggle": squiggle,
    "published_funnel": published_funnel,
    # Those of its older table and its precursor.
    "banana": banana,
    "double_well": double_well,
    "rezende1": rezende1,
    "rezende2": rezende2,
    "rezende3": rezende3,
    "rezende4": rezende4,
    "student_t": student_t,
    # Harder: more modes, heavier tails, more dimensions.
    "correlated_gaussian": _correlated_gaussian,
    "gmm40": gmm40,
    "student_t_mixture": student_t_mixture,
    "funnel_nd": funnel_nd,
    "many_well": many_well,
    "phi4": phi4,
    "dw4": dw4,
    "lj13": lj13,
}
"""Name to a constructor without arguments."""


def get(name: str) -> Target:
    """Build the target of that name, or say which name is nearest."""
    return TARGETS[check_choice(name, "name", TARGETS)]()
