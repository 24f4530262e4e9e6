"""Models that users bring: fitted with no settings, and held against long NUTS parameter by parameter."""

from pushforward.studies.models.run import plan as plan
from pushforward.studies.models.run import run as run
from pushforward.studies.models.settings import PRESETS as PRESETS
from pushforward.studies.models.settings import Settings as Settings
