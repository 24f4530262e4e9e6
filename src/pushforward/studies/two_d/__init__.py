"""Six densities in the plane: the paper's Tables 1 and 2, every baseline, floors beside every figure."""

from pushforward.studies.two_d.plan import plan as plan
from pushforward.studies.two_d.run import run as run
from pushforward.studies.two_d.settings import PRESETS as PRESETS
from pushforward.studies.two_d.settings import Settings as Settings
