"""Front ends: a NumPyro or PyMC model in, a target of named parameters out."""

from pushforward.models.numpyro_front import from_numpyro as from_numpyro
from pushforward.models.pymc_front import from_pymc as from_pymc
