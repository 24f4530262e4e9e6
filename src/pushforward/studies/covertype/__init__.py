"""Bayesian logistic regression on Covertype: the paper's Table 3, against NUTS on all of the data."""

from pushforward.studies.covertype.plan import plan as plan
from pushforward.studies.covertype.run import run as run
from pushforward.studies.covertype.settings import PRESETS as PRESETS
from pushforward.studies.covertype.settings import Settings as Settings
