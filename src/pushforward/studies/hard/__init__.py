"""Targets that plain training fails on: many modes, funnels, a thousand dimensions, particles."""

from pushforward.studies.hard.plan import plan as plan
from pushforward.studies.hard.run import run as run
from pushforward.studies.hard.settings import PRESETS as PRESETS
from pushforward.studies.hard.settings import Settings as Settings
