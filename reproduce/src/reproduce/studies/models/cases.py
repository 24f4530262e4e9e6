"""The study's models: by which doors each comes in, and which chain tells the truth about it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pushforward.base import NamedTarget
from pushforward.checks import check_choice
from pushforward.models import from_numpyro
from reproduce.studies.models import data, programs
from reproduce.studies.models.programs import schools_by_hand, schools_of_pymc

REFERENCE = "nuts"
FRONTS = ("numpyro", "pymc", "plain")


class Case(NamedTuple):
    """A NumPyro model with its data, and other ways to write it."""

    program: Callable[..., None]
    data: Callable[[], tuple[Any, ...]]
    truth: Callable[..., None]
    """The model whose chains are believed: the same posterior, in coordinates that NUTS can walk in."""
    others: dict[str, Callable[[], NamedTarget]]

    @property
    def fronts(self) -> tuple[str, ...]:
        """The front ends through which the model is fitted."""
        return ("numpyro", *self.others)

    def target(self, front: str) -> NamedTarget:
        """Return the model as a target, through a front end."""
        if check_choice(front, "methods", self.fronts) != "numpyro":
            return self.others[front]()
        return from_numpyro(self.program, *self.data())


def _schools() -> tuple[Any, ...]:
    return data.SCHOOLS_SIGMA, data.SCHOOLS_Y


def _case(program: Callable[..., None], given: Callable[[], tuple[Any, ...]]) -> Case:
    return Case(program, given, program, {})


CASES: dict[str, Case] = {
    "eight_schools_centred": Case(
        programs.eight_schools_centred, _schools, programs.eight_schools_non_centred, {}
    ),
    "eight_schools_non_centred": Case(
        programs.eight_schools_non_centred,
        _schools,
        programs.eight_schools_non_centred,
        {"pymc": schools_of_pymc, "plain": schools_by_hand},
    ),
    "radon": _case(programs.radon, data.radon),
    "gaussian_process": _case(programs.gaussian_process, data.curve),
    "ordered_mixture": _case(programs.ordered_mixture, lambda: (data.two_groups(),)),
}
"""By name."""
