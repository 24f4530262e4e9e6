"""One-shot samplers for un-normalised densities: train once, then draw millions in a single pass."""

from pushforward import targets as targets
from pushforward._cache import use_compilation_cache as _use_compilation_cache
from pushforward.base import Algorithm as Algorithm
from pushforward.base import ExactTarget as ExactTarget
from pushforward.base import Target as Target
from pushforward.files import BadFileError as BadFileError
from pushforward.sampler import Sampler as Sampler
from pushforward.sampler import load as load
from pushforward.training import Fit as Fit
from pushforward.training import FitError as FitError
from pushforward.training import Outcome as Outcome
from pushforward.training import Settings as Settings
from pushforward.training import check_target as check_target
from pushforward.training import fit as fit
from pushforward.training import preset as preset

__version__ = "0.1.0"

_use_compilation_cache()
