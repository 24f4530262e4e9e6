"""Sampling from an energy-based model of images: the paper's Table 4."""

from reproduce.studies.ebm.plan import plan as plan
from reproduce.studies.ebm.run import run as run
from reproduce.studies.ebm.settings import PRESETS as PRESETS
from reproduce.studies.ebm.settings import Settings as Settings
