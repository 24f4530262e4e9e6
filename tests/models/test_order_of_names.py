"""Names come back in the order in which they were written, whatever the alphabet says."""

import collections
import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pushforward as pf
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.parameters import Parameter, Parameters
from pushforward.sampler import Sampler

KEY = jax.random.key(0)
WRITTEN = ("tau", "mu", "beta")


def log_density(p):
    """Of laws so different that no two coordinates can be mistaken for each other."""
    return -p["tau"] - 0.5 * (p["mu"] - 5.0) ** 2 - 0.5 * jnp.sum((p["beta"] / 0.01) ** 2)


def target():
    return pf.Target.from_log_density(
        log_density,
        example={"tau": 1.0, "mu": 0.0, "beta": jnp.zeros(2)},
        constraints={"tau": "positive"},
        name="written",
    )


def sampler_of(parameters):
    """A sampler of the target, exact but for `tau`, with the names in the order of the record."""
    place = {"tau": [0.0, 0.5], "mu": [5.0, 1.0], "beta": [0.0, 0.01]}
    centre, scale = np.array([place[p.name] for p in parameters.items for _ in range(p.size)]).T
    zero = jnp.zeros(4)
    frame = Frame(jnp.asarray(centre), jnp.asarray(scale), zero, zero, jnp.eye(4))
    network = mlp(KEY, 4, 4, width=2, depth=1, skip=True, zero_last=True)
    return Sampler(Normal(4), network, frame, json.dumps({"target": "written"}), parameters)


def test_an_example_keeps_its_order():
    found = target()
    assert found.parameters.names == WRITTEN
    x = jnp.asarray([0.3, 1.0, 2.0, 3.0])
    values = found.values(x)
    np.testing.assert_allclose(values["tau"], np.exp(0.3), rtol=1e-6)
    np.testing.assert_allclose(values["beta"], [2.0, 3.0])
    np.testing.assert_allclose(found.log_density(x), log_density(values) + 0.3, rtol=1e-6)


def test_examples_of_every_make_keep_their_order():
    pair = collections.namedtuple("pair", ["z", "a"])
    example = {
        "b": [0.0, {"y": 1.0, "x": jnp.ones(2)}],
        "a": None,
        "ordered": collections.OrderedDict(q=0.0, p=0.0),
        "pair": pair(0.0, 0.0),
    }
    found = pf.Target.from_log_density(lambda p: -(p["b"][1]["y"] ** 2), example=example)
    names = ("b.0", "b.1.y", "b.1.x", "ordered.q", "ordered.p", "pair.z", "pair.a")
    assert found.parameters.names == names
    values = found.values(jnp.arange(8.0))
    assert (float(values["b"][1]["y"]), float(values["pair"].a)) == (1.0, 7.0)
    assert jax.tree.structure(values) == jax.tree.structure(example)


def test_models_keep_the_order_of_their_sites():
    def model():
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        mu = numpyro.sample("mu", dist.Normal(0, tau))
        numpyro.deterministic("z", mu + tau)
        numpyro.deterministic("a", mu - tau)
        numpyro.sample("alpha", dist.Normal(mu, tau))

    found = pf.from_numpyro(model)
    assert found.parameters.names == ("tau", "mu", "alpha")
    draws = pf.Draws.of(jnp.ones((4, 3)), found.parameters).derive(found)
    assert draws.names == ("tau", "mu", "alpha", "z", "a")


def test_pymc_models_keep_the_order_of_their_variables():
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1.0)
        pm.Normal("alpha", 0.0, tau)
    assert pf.from_pymc(model).parameters.names == ("tau", "alpha")


@pytest.mark.parametrize("suffix", ["npz", "npy", "csv", "parquet", "nc"])
def test_draws_keep_it_through_everything(tmp_path, suffix):
    found = target()
    draws = sampler_of(found.parameters).draws(KEY, 60)
    assert draws.names == WRITTEN
    assert list(draws.summary()) == ["tau", "mu", "beta[0]", "beta[1]"]
    assert draws.thin(5, found).names == WRITTEN
    assert jax.jit(lambda draws: jax.tree.map(jnp.sin, draws))(draws).names == WRITTEN
    assert tuple(draws.to_arviz().posterior.data_vars) == WRITTEN
    draws.save(tmp_path / f"d.{suffix}")
    assert pf.load_draws(tmp_path / f"d.{suffix}").names == WRITTEN


# Samplers saved while the names of an example stood in the order of the alphabet.


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    old = Parameters((Parameter("beta", (2,)), Parameter("mu"), Parameter("tau", (), "positive")))
    path = tmp_path_factory.mktemp("old") / "old.pf"
    sampler_of(old).save(path)
    return path


def test_a_saved_sampler_keeps_the_order_it_has(saved):
    draws = pf.load(saved).draws(KEY, 500)
    assert draws.names == ("beta", "mu", "tau")
    assert abs(np.mean(draws["mu"]) - 5.0) < 0.5


def test_it_meets_a_target_of_another_order_in_its_own(saved):
    sampler, found = pf.load(saved), target()
    draws = sampler.draws(KEY, 500)
    lp = draws.to_arviz(found).sample_stats["lp"].values[0]
    expected = [log_density(p) + jnp.log(p["tau"]) for p in _rows(draws)]
    np.testing.assert_allclose(lp[:20], expected, rtol=1e-4)
    refined = draws.refine(KEY, found, steps=3)
    assert refined.about["refined"]["acceptance"] > 0.2
    report = pf.check(KEY, sampler, found, settings=pf.CheckSettings(num_draws=1000))
    assert report["stein"].details["worst"][0]["effect"] < 2.0


def _rows(draws):
    return [{name: draws[name][i] for name in draws} for i in range(20)]
