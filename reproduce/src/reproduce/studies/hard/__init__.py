"""Targets that plain training fails on: many modes, funnels, a thousand dimensions, particles."""

from reproduce.studies.hard.run import plan as plan
from reproduce.studies.hard.run import run as run
from reproduce.studies.hard.settings import PRESETS as PRESETS
from reproduce.studies.hard.settings import Settings as Settings
