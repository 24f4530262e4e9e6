"""Six densities in the plane: the paper's Tables 1 and 2, every baseline, floors beside every figure."""

from reproduce.studies.two_d.run import plan as plan
from reproduce.studies.two_d.run import run as run
from reproduce.studies.two_d.settings import PRESETS as PRESETS
from reproduce.studies.two_d.settings import Settings as Settings
