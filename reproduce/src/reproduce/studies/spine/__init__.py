"""The core's own proof: default, KL and Fisher fits on four densities in the plane and on Student's t."""

from reproduce.studies.spine.run import PRESETS as PRESETS
from reproduce.studies.spine.run import Settings as Settings
from reproduce.studies.spine.run import plan as plan
from reproduce.studies.spine.run import run as run
