"""From a target to a sampler: the alternating algorithm, the one loop, the teacher, the recipe."""

from pushforward.training.alternating import Parts as Parts
from pushforward.training.alternating import alternating as alternating
from pushforward.training.fit import Fit as Fit
from pushforward.training.fit import fit as fit
from pushforward.training.loop import LoopResult as LoopResult
from pushforward.training.loop import run as run
from pushforward.training.outcome import FitError as FitError
from pushforward.training.outcome import Outcome as Outcome
from pushforward.training.preflight import check_target as check_target
from pushforward.training.settings import PRESETS as PRESETS
from pushforward.training.settings import Settings as Settings
from pushforward.training.settings import preset as preset
