"""Is the check to be trusted? Its false alarms on exact draws, and its power on planted defects."""

from pushforward.studies.trust.run import plan as plan
from pushforward.studies.trust.run import run as run
from pushforward.studies.trust.settings import PRESETS as PRESETS
from pushforward.studies.trust.settings import Settings as Settings
