"""All that one stage of a fit needs of another."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.host import into, on_device, out_of
from pushforward.latents import Latent, Mixture
from pushforward.networks import Identity
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.peaks import Peaks
from pushforward.sampler import Sampler
from pushforward.training.alternating import Parts
from pushforward.training.loop import LoopResult
from pushforward.training.outcome import Outcome

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return what a stage before has found: the stage that asks for it applies nowhere else."""
    assert value is not None
    return value


@dataclass(frozen=True, kw_only=True)
class State:
    """Where a fit stands: a sampler (`latent`, `network`, `frame`), and what was found on the way."""

    target: Target
    """As stages see it: looked at one point at a time where it solves equations inside."""
    frame: Frame | None = None
    """Coordinates in which the target is roughly standard; `None`: its own."""
    latent: Latent | None = None
    """The law of the latents; after annealing, the mixture that stands for the draws."""
    network: Any = None
    """The map; `None`: the identity."""
    draws: Float[Array, "m dim"] | None = None
    """Draws of the target, in the frame, all of equal weight."""
    log_z: float | None = None
    peaks: Peaks | None = None
    trail: Float[np.ndarray, "m dim"] | None = None
    """Places at which walks uphill were seen."""
    one_normal: bool = False
    """Whether training may begin at one normal law: there is one mode, and no map has been fitted."""
    laplace: Frame | None = None
    """The frame of the one peak's normal law, where there is one peak."""
    rounds: tuple[dict[str, float], ...] = ()
    """What each round of particles came to."""
    good: bool = False
    """Whether the judge asks for no further round of particles."""
    cut: bool = False
    """Whether time was over before a stage was."""
    next_cost: float = 1.0
    """How many times as long as what led to this state the next round takes."""
    parts: Parts | None = None
    result: LoopResult | None = None
    """Of the training: what stays fixed, and where it came out."""
    before: "State | None" = None
    """The state that the training began with."""
    outcome: Outcome = Outcome.FINISHED
    why: str = ""
    """What speaks against the sampler, if anything."""
    reverted: bool = False
    """Whether the sampler is not the one that the last rows of the history tell of."""
    metrics: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    """What the stage tells of itself: the driver writes it down, and clears it for the next."""

    def replace(self, **changes: Any) -> "State":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def resumed(self, target: Target) -> "State":
        """Return what was found before any training, for another fit of the same target."""
        found = self if self.before is None else self.before
        # What time has cut short may go on; other stages have done their work, good enough or not.
        good = found.good or not found.cut
        return found.replace(target=target, good=good, cut=False, outcome=Outcome.FINISHED, why="")

    def with_law(self, law: Approximation, x: np.ndarray, row: dict[str, float], **more: Any) -> "State":
        """Return the state with what a round has found: a law, draws of the target, and a row of figures."""
        return self.replace(
            frame=law.frame, latent=law.latent, network=law.network, draws=on_device(into(law.frame, x)),
            log_z=row["log_z"], rounds=(*self.rounds, row),
            metrics={name: row[name] for name in ("efficiency", "log_z")}, **more,
        )  # fmt: skip

    @property
    def dim(self) -> int:
        """Coordinates of the target."""
        return self.target.dim

    @property
    def coordinates(self) -> Frame:
        """The frame, or the target's own coordinates."""
        return Frame.identity(self.dim) if self.frame is None else self.frame

    @property
    def has_sampler(self) -> bool:
        """Whether there is something to hand back."""
        return self.latent is not None

    def sampler(self, about: str = "{}", parameters: Any = None) -> Sampler:
        """Return the sampler as it stands."""
        if self.latent is None:
            raise ValueError("there is no sampler yet: no stage has found a law of latents.")
        return Sampler(self.latent, self.map, self.coordinates, about, parameters)

    @property
    def law(self) -> Approximation:
        """The sampler, as stages before the training see it."""
        return Approximation(self.coordinates, known(self.latent), self.network)

    @property
    def outside(self) -> Float[np.ndarray, "m dim"]:
        """The draws out of the frame, in double precision."""
        return out_of(self.coordinates, np.asarray(known(self.draws), np.float64))

    @property
    def mixture(self) -> Mixture:
        """The mixture that stands for the draws."""
        assert isinstance(self.latent, Mixture)
        return self.latent

    @property
    def efficiency(self) -> float:
        """The efficiency of the last round of particles; zero where there was none."""
        return self.rounds[-1].get("efficiency", 0.0) if self.rounds else 0.0

    @property
    def map(self) -> Any:
        """The network, or the identity where there is none."""
        return Identity(self.dim) if self.network is None else self.network
