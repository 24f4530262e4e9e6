"""How many steps to take before looking up: a run must hear an interrupt, a clock, another process."""

import time
from typing import Any

from jax.sharding import Mesh

from pushforward import distributed
from pushforward.failures import is_exhausted
from pushforward.training.outcome import Outcome
from pushforward.training.sharding import on_all, on_one


class Pace:
    """Doubles its stride while steps are quick and halves it when they are slow.

    with pace:
        take(pace.steps(left))
    """

    def __init__(self, look_every: float) -> None:
        self._look_every = look_every
        self._stride, self._taken, self._started = 1, 0, 0.0

    def steps(self, left: int) -> int:
        """Return how many of the steps that are left to take at once."""
        self._taken = min(self._stride, left)
        return self._taken

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *_: object) -> None:
        seconds = time.monotonic() - self._started
        if seconds > self._look_every:
            self._stride = max(1, self._taken // 2)
        elif seconds < self._look_every / 2 and self._taken == self._stride:
            self._stride *= 2


class Alone:
    """A run of one process, which needs nobody's consent; its devices share the batches."""

    def __init__(self, mesh: Mesh | None = None):
        self.mesh = mesh

    def __enter__(self) -> "Alone":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def place(self, tree: Any) -> Any:
        """Put arrays where the steps need them: on every device."""
        return on_all(tree, self.mesh)

    def back(self, tree: Any) -> Any:
        """Return arrays on this process's own device, for all that is no step."""
        return on_one(tree) if self.mesh is not None else tree

    def prepare(self, program: Any, *arguments: Any) -> Any:
        """Return the program ready to be called; alone, one may as well compile at the first call."""
        del arguments
        return program

    def agree(self, steps: int, *, stop: bool, patient: bool) -> tuple[int, Outcome | None]:
        """Return how many steps to take, or why to take none."""
        del patient
        return steps, Outcome.OUT_OF_TIME if stop else None

    def blame(self, error: BaseException) -> Outcome:
        """Name the outcome that an error means."""
        return Outcome.OUT_OF_MEMORY if is_exhausted(error) else Outcome.FAILED


class Crew(Alone):
    """A run of many processes: all take the same steps, and stop when any of them must."""

    def __enter__(self) -> "Alone":
        self._ears = distributed.Ears().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ears.__exit__()

    def prepare(self, program: Any, *arguments: Any) -> Any:
        """Compile the program before anybody waits in it: a collective gives a late process half a minute."""
        return program.lower(*arguments).compile()

    def agree(self, steps: int, *, stop: bool, patient: bool) -> tuple[int, Outcome | None]:
        """Return how many steps to take, or why to take none: what process 0 wants, unless one must stop."""
        if patient:
            # Collectives lose patience with a process that still compiles; this meeting does not. It is
            # slow to see that one is lost, though, which a collective sees at once.
            distributed.wait_for_all()
        said = distributed.agree([steps, stop, self._ears.asked])
        if said[:, 2].any():
            return 0, Outcome.INTERRUPTED
        return int(said[0, 0]), Outcome.OUT_OF_TIME if said[:, 1].any() else None

    def blame(self, error: BaseException) -> Outcome:
        """Name the outcome that an error means."""
        return Outcome.LOST_PROCESS if distributed.is_loss(error) else super().blame(error)
