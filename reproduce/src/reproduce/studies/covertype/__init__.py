"""Bayesian logistic regression on Covertype: the paper's Table 3, against NUTS on all of the data."""

from reproduce.studies.covertype.run import plan as plan
from reproduce.studies.covertype.run import run as run
from reproduce.studies.covertype.settings import PRESETS as PRESETS
from reproduce.studies.covertype.settings import Settings as Settings
