"""How a network is trained: the alternating algorithm of the paper, and the one loop."""

from pushforward.training.alternating import Parts as Parts
from pushforward.training.alternating import State as TrainingState
from pushforward.training.alternating import alternating as alternating
from pushforward.training.alternating import averaged as averaged
from pushforward.training.loop import LoopResult as LoopResult
from pushforward.training.loop import Position as Position
from pushforward.training.loop import Row as Row
from pushforward.training.loop import run as run
from pushforward.training.outcome import FitError as FitError
from pushforward.training.outcome import Outcome as Outcome

__all__ = ["TrainingState"]
