"""Sampling from an energy-based model of images: the paper's Table 4."""

from pushforward.studies.ebm.plan import plan as plan
from pushforward.studies.ebm.run import run as run
from pushforward.studies.ebm.settings import PRESETS as PRESETS
from pushforward.studies.ebm.settings import Settings as Settings
