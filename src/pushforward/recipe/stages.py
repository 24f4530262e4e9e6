"""What a stage is: one file, one idea, run where it applies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Key

from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.training.alternating import Parts
from pushforward.training.loop import LoopResult


@runtime_checkable
class Clock(Protocol):
    """What the driver offers a stage: time, a budget, and the loop with all that surrounds it."""

    plans: bool
    """Whether a budget decides how much is done; else it only cuts."""

    def until(self, share: float) -> float:
        """Return when a share of the budget is spent, on `time.monotonic()`'s clock."""
        ...

    observe: Callable[[str], None]
    """Tells whoever watches what is being done."""

    def steps(self, key: Key[Array, ""], algorithm: Any, state: Any, usual: int) -> int:
        """Return how many training steps there is time for."""
        ...

    def train(self, key: Key[Array, ""], state: State, recipe: Recipe) -> tuple[Parts, LoopResult]:
        """Run the loop on the state's parts, with checkpoints, devices, a progress bar and callbacks."""
        ...


Run = Callable[[Key[Array, ""], State, Recipe, Clock], Iterator[State]]


@dataclass(frozen=True)
class Stage:
    """A step of a fit.

    **Arguments:**

    - `name`: names the stage in `Fit.phases`, and its key.
    - `applies`: whether it has anything to do.
    - `run`: yields states, each safe to hand back and better than the one before.
    - `together`: whether all processes take part; else the first runs it and hands over what it found.
    """

    name: str
    applies: Callable[[State, Recipe], bool]
    run: Run
    together: bool = False
