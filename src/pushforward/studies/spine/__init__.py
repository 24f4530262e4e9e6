"""The core's own proof: default, KL and Fisher fits on four densities in the plane and on Student's t."""

from pushforward.studies.spine.run import PRESETS as PRESETS
from pushforward.studies.spine.run import Settings as Settings
from pushforward.studies.spine.run import plan as plan
from pushforward.studies.spine.run import run as run
