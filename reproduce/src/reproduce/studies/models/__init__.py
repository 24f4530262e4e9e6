"""Models that users bring: fitted with no settings, and held against long NUTS parameter by parameter."""

from reproduce.studies.models.run import plan as plan
from reproduce.studies.models.run import run as run
from reproduce.studies.models.settings import PRESETS as PRESETS
from reproduce.studies.models.settings import Settings as Settings
