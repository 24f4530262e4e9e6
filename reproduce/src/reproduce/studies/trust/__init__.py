"""Is the check to be trusted? Its false alarms on exact draws, and its power on planted defects."""

from reproduce.studies.trust.run import PRESETS as PRESETS
from reproduce.studies.trust.run import Settings as Settings
from reproduce.studies.trust.run import plan as plan
from reproduce.studies.trust.run import run as run
