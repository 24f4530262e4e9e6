"""Eight schools again, written for PyMC and as a plain function: the same posterior by other doors."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from pushforward.base import NamedTarget, Target
from pushforward.models import from_pymc
from reproduce.studies.models.data import SCHOOLS_SIGMA as SIGMA
from reproduce.studies.models.data import SCHOOLS_Y as Y


def schools_of_pymc() -> NamedTarget:
    """Return the target of the PyMC model."""
    import pymc as pm

    with pm.Model(coords={"school": np.arange(len(Y))}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        z = pm.Normal("z", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("obs", theta, SIGMA, observed=Y)
    return from_pymc(model)


def schools_by_hand() -> NamedTarget:
    """Return the target of a function of named parameters, one of them positive."""
    target = Target.from_log_density(
        eight_schools,
        example={"mu": 0.0, "tau": 1.0, "z": np.zeros(len(Y))},
        constraints={"tau": "positive"},
    )
    assert isinstance(target, NamedTarget)
    return target


def eight_schools(p: dict[str, Array]) -> Float[Array, ""]:
    """Return the log density of values inside their constraints, up to a constant."""
    prior = norm.logpdf(p["mu"], 0, 5) - jnp.log1p((p["tau"] / 5) ** 2) + norm.logpdf(p["z"]).sum()
    return prior + norm.logpdf(Y, p["mu"] + p["tau"] * p["z"], SIGMA).sum()
