"""The models, as users of NumPyro write them; and eight schools once more, by other doors."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from pushforward.base import NamedTarget, Target
from pushforward.models import from_pymc
from reproduce.studies.models.data import NUM_COUNTIES
from reproduce.studies.models.data import SCHOOLS_SIGMA as SIGMA
from reproduce.studies.models.data import SCHOOLS_Y as Y

Vector = Float[Array | np.ndarray, " n"]
JITTER = 1e-5
"""Added to the diagonal of a covariance, so that its Cholesky factor exists in single precision."""


def eight_schools_centred(sigma: Vector, y: Vector) -> None:
    """Effects straight from their common law: a funnel where it is narrow."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(sigma)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def eight_schools_non_centred(sigma: Vector, y: Vector) -> None:
    """Scaled effects: the same posterior, in coordinates that are independent a priori."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(sigma)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def radon(county: Int[Array | np.ndarray, " n"], floor: Vector, log_radon: Vector) -> None:
    """Varying intercepts, a common slope for the floor, and both spreads unknown."""
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    slope = numpyro.sample("slope", dist.Normal(0, 10))
    sigma_county = numpyro.sample("sigma_county", dist.HalfNormal(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    with numpyro.plate("county", NUM_COUNTIES):
        alpha = numpyro.sample("alpha", dist.Normal(mu, sigma_county))
    with numpyro.plate("house", len(log_radon)):
        numpyro.sample("obs", dist.Normal(jnp.asarray(alpha)[county] + slope * floor, sigma), obs=log_radon)


def gaussian_process(x: Vector, y: Vector) -> None:
    """Regression by a Gaussian process, its function summed out: length, amplitude and noise are unknown."""
    length = numpyro.sample("length", dist.InverseGamma(5, 5))
    amplitude = numpyro.sample("amplitude", dist.HalfNormal(2))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    apart = (x[:, None] - x[None, :]) / length
    covariance = amplitude**2 * jnp.exp(-0.5 * apart**2) + (noise**2 + JITTER) * jnp.eye(len(x))
    numpyro.sample("obs", dist.MultivariateNormal(jnp.zeros(len(x)), covariance), obs=y)


def ordered_mixture(y: Vector) -> None:
    """Two normal groups, told apart by the order of their means; which value is whose is summed out."""
    share = numpyro.sample("share", dist.Beta(2, 2))
    means = numpyro.sample("means", dist.ImproperUniform(dist.constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior of the means", dist.Normal(0, 5).log_prob(means).sum())
    with numpyro.plate("group", 2):
        sds = numpyro.sample("sds", dist.HalfNormal(2))
    groups = dist.Categorical(probs=jnp.stack([share, 1 - share]))
    with numpyro.plate("value", len(y)):
        numpyro.sample("obs", dist.MixtureSameFamily(groups, dist.Normal(means, sds)), obs=y)


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
        eight_schools, example={"mu": 0.0, "tau": 1.0, "z": np.zeros(len(Y))}, constraints={"tau": "positive"}
    )
    assert isinstance(target, NamedTarget)
    return target


def eight_schools(p: dict[str, Array]) -> Float[Array, ""]:
    """Return the log density of values inside their constraints, up to a constant."""
    prior = norm.logpdf(p["mu"], 0, 5) - jnp.log1p((p["tau"] / 5) ** 2) + norm.logpdf(p["z"]).sum()
    return prior + norm.logpdf(Y, p["mu"] + p["tau"] * p["z"], SIGMA).sum()
