"""How a run can end, by name, and the error that carries a run which ended badly."""

import enum
from typing import Any


class Outcome(enum.Enum):
    """Every way a run can end; the value is the message."""

    FINISHED = "every stage has done its work"
    CONVERGED = "more steps would gain nothing by the weights of the draws, so the run stopped early"
    OUT_OF_TIME = "the time budget was reached; the sampler is the best so far"
    UNSTARTED = "the time budget left no step of training; the sampler is the one before the first"
    STOPPED = "the callback ended the run; the sampler is the last one trained"
    UNTRAINED = "training ran away; the sampler is the one it began with, which is good by its weights"
    INACCURATE = "the run came to its end, but by its own account the sampler is not the target yet"
    INTERRUPTED = "the run was interrupted; the sampler is the last good one"
    DIVERGED = "too many steps were not finite and were skipped; the sampler is the last finite one"
    FAILED = "the log density raised an error; the sampler is the last good one"
    OUT_OF_MEMORY = "memory ran out and smaller tiles did not help; the sampler is the last good one"
    LOST_PROCESS = "another process of the run was lost; the sampler is the last good one"

    @property
    def good(self) -> bool:
        """Whether the sampler is what was asked for, or at least the best the budget allowed."""
        ended = (Outcome.FINISHED, Outcome.CONVERGED, Outcome.UNTRAINED, Outcome.STOPPED)
        return self.cut or self in ended

    @property
    def cut(self) -> bool:
        """Whether time was over before the work was done."""
        return self in (Outcome.OUT_OF_TIME, Outcome.UNSTARTED)

    @property
    def broken(self) -> bool:
        """Whether something went wrong on the way: what is raised."""
        return not (self.good or self in (Outcome.INACCURATE, Outcome.INTERRUPTED))


class TimeIsUp(KeyboardInterrupt):
    """The end of a budget, met in the middle of something: what hands back on Ctrl-C hands back now."""


def ended_by(asked: KeyboardInterrupt) -> Outcome:
    """Name the outcome of what an interrupt has ended."""
    return Outcome.OUT_OF_TIME if isinstance(asked, TimeIsUp) else Outcome.INTERRUPTED


class FitError(RuntimeError):
    """A fit that ended badly; `error.fit` holds what there is: the last good sampler and the history."""

    def __init__(self, message: str, fit: Any = None):
        super().__init__(message)
        self.fit = fit
