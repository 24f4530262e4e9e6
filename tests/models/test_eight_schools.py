"""One model written three times: NumPyro, PyMC and a plain function give one posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.stats import norm
from models_data import SIGMA, Y
from numpyro.infer.util import potential_energy

import pushforward as pf


def centred(sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(sigma)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def non_centred(sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(sigma)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def plain_centred(p):
    prior = norm.logpdf(p["mu"], 0, 5) - jnp.log1p((p["tau"] / 5) ** 2)
    return prior + norm.logpdf(p["theta"], p["mu"], p["tau"]).sum() + norm.logpdf(Y, p["theta"], SIGMA).sum()


def plain_non_centred(p):
    prior = norm.logpdf(p["mu"], 0, 5) - jnp.log1p((p["tau"] / 5) ** 2) + norm.logpdf(p["z"]).sum()
    return prior + norm.logpdf(Y, p["mu"] + p["tau"] * p["z"], SIGMA).sum()


def of_pymc(*, centre):
    import pymc as pm

    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        if centre:
            theta = pm.Normal("theta", mu, tau, dims="school")
        else:
            z = pm.Normal("z", 0, 1, dims="school")
            theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("obs", theta, SIGMA, observed=Y)
    return pf.from_pymc(model)


@pytest.fixture(scope="module", params=["centred", "non-centred"])
def three(request):
    centre = request.param == "centred"
    model, plain, last = (
        (centred, plain_centred, "theta") if centre else (non_centred, plain_non_centred, "z")
    )
    before = jax.config.jax_enable_x64
    targets = {
        "numpyro": pf.from_numpyro(model, SIGMA, y=Y),
        "plain": pf.Target.from_log_density(
            plain, example={"mu": 0.0, "tau": 1.0, last: np.zeros(8)}, constraints={"tau": "positive"}
        ),
        "pymc": of_pymc(centre=centre),
    }
    assert jax.config.jax_enable_x64 == before  # PyTensor's backend would have switched it on
    return model, targets


def test_all_three_have_the_same_density_and_values(three):
    _, targets = three
    x = jax.random.normal(jax.random.key(0), (6, 10))
    found = {}
    for name, target in targets.items():
        order = np.argsort([["mu", "tau", "theta", "z"].index(n) for n in target.parameters.names])
        assert order.tolist() == [0, 1, 2]
        assert (target.dim, target.parameters.items[1].kind) == (10, "positive")
        found[name] = np.asarray(jax.jit(jax.vmap(target.log_density))(x))
        assert found[name].dtype == np.float32
    for name in ("plain", "pymc"):
        difference = found[name] - found["numpyro"]
        assert np.ptp(difference) < 1e-4, name  # one constant for all points
    values = {name: target.parameters.constrain(np.asarray(x)) for name, target in targets.items()}
    for name in values["numpyro"]:
        np.testing.assert_array_equal(values["plain"][name], values["numpyro"][name])
        np.testing.assert_array_equal(values["pymc"][name], values["numpyro"][name])


def test_numpyros_density_is_numpyros_own(three):
    model, targets = three
    target, x = targets["numpyro"], jnp.linspace(-1.0, 1.0, 10)
    free = {"mu": x[0], "tau": x[1], target.parameters.names[2]: x[2:]}
    theirs = potential_energy(numpyro.handlers.seed(model, 0), (SIGMA,), {"y": Y}, free)
    np.testing.assert_allclose(target.log_density(x), -theirs, rtol=1e-5)


def test_axes_are_named_by_plates_and_dims(three):
    _, targets = three
    assert targets["numpyro"].parameters.items[2].dims == ("school",)
    assert targets["pymc"].parameters.items[2].dims == ("school",)
    assert targets["pymc"].parameters.coords == (("school", tuple("ABCDEFGH")),)


def test_deterministic_sites_can_be_derived(three):
    model, targets = three
    if model is centred:
        assert targets["numpyro"].derive is None
        return
    x = jax.random.normal(jax.random.key(1), (4, 10))
    for name in ("numpyro", "pymc"):
        draws = pf.Draws.of(x, targets[name].parameters).derive(targets[name])
        expected = draws["mu"][:, None] + draws["tau"][:, None] * draws["z"]
        np.testing.assert_allclose(draws["theta"], expected, rtol=1e-5)


def test_data_are_arguments_of_the_program(three):
    _, targets = three
    leaves = [leaf for leaf in jax.tree.leaves(targets["numpyro"]) if isinstance(leaf, jax.Array)]
    assert len(leaves) >= 2
    assert {leaf.shape for leaf in leaves} == {(8,)}
