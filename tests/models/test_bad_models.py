"""What users get wrong in a model: the site named, what came, and what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from models_data import SIGMA, Y
from numpyro.infer.util import potential_energy

import pushforward as pf

pytestmark = pytest.mark.usefixtures("unhooked")


def schools(sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    numpyro.sample("obs", dist.Normal(mu, sigma), obs=y)


def discrete():
    k = numpyro.sample("switch", dist.Bernoulli(0.5))
    numpyro.sample("obs", dist.Normal(k, 1.0), obs=1.0)


def dynamic():
    top = numpyro.sample("top", dist.HalfNormal(1.0))
    numpyro.sample("inside", dist.Uniform(0.0, top))


def all_observed():
    numpyro.sample("obs", dist.Normal(0, 1), obs=1.0)


def branching():
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.factor("f", 1.0 if a > -9 else 0.0)


def with_param():
    numpyro.param("loc", 1.0)
    numpyro.sample("a", dist.Normal(0, 1))


def part_of(data):
    a = numpyro.sample("a", dist.Normal(0, 1))
    with numpyro.plate("rows", 10, subsample_size=3) as i:
        numpyro.sample("obs", dist.Normal(a, 1), obs=data[i])


def counts(y):
    numpyro.sample("obs", dist.Poisson(numpyro.sample("rate", dist.Gamma(1.0, 1.0))), obs=y)


def raising(y):
    numpyro.sample("a", dist.Normal(0, 1))
    raise KeyError("no such column")


def line(x, y):
    numpyro.sample("obs", dist.Normal(numpyro.sample("slope", dist.Normal(0, 1)) * x, 1.0), obs=y)


def computed(y):
    one = numpyro.sample("one", dist.Delta(1.0))
    numpyro.sample("obs", dist.Normal(numpyro.sample("a", dist.Normal(one, 1)), 1), obs=y)


CASES = {
    "no arguments": (schools, (), {}, TypeError, ("'sigma'", "schools(sigma, y=None)")),
    "no data": (schools, (SIGMA,), {}, ValueError, ("'y'", "data are missing", "y=None")),
    "holes in the data": (
        schools, (SIGMA,), {"y": np.where(Y > 20, np.nan, Y)}, ValueError, ("'obs'", "missing in 1 of 8"),
    ),
    "discrete site": (discrete, (), {}, ValueError, ("'switch'", "discrete", "MixtureSameFamily")),
    "moving support": (dynamic, (), {}, ValueError, ("'inside'", "depends on other sites")),
    "nothing latent": (all_observed, (), {}, ValueError, ("no latent site", "'obs'")),
    "control flow": (branching, (), {}, ValueError, ("jax.numpy.where",)),
    "param": (with_param, (), {}, ValueError, ("'loc'", "no prior")),
    "subsample": (part_of, (np.zeros(10),), {}, ValueError, ("'rows'", "subsample_size")),
    "negative counts": (counts, (np.array([1, -2]),), {}, ValueError, ("1 of 2 data at 'obs'", "outside")),
    "an error of its own": (raising, (np.zeros(3),), {}, ValueError, ("KeyError: 'no such column'", "[3]")),
    "rows that differ": (
        line, (np.ones(3), np.ones(4)), {}, ValueError, ("'obs'", "shape (4,)", "shape (3,)", "ndarray[4]"),
    ),
    "names for data": (line, (np.ones(2), np.array(["a", "b"])), {}, TypeError, ("'obs'", "<U1", "numbers")),
    "None among data": (line, (np.ones(2), np.array([1.0, None])), {}, TypeError, ("'obs'", "object")),
    "holes in a covariate": (
        line, (np.array([1.0, np.nan]), np.ones(2)), {}, ValueError, ("loc parameter", "ndarray[2] with 1 NaN"),
    ),
    "Delta": (computed, (1.0,), {}, ValueError, ("'one'", "numpyro.deterministic")),
    "a table": (line, (1.0, pd.Series([1.0, 2.0])), {}, ValueError, ("to_numpy()",)),
    "no model": (3, (), {}, TypeError, ("`model` must be a function", "int")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_numpyro_models_that_cannot_be_used(name):
    model, args, kwargs, error, words = CASES[name]
    with pytest.raises(error) as caught:
        pf.from_numpyro(model, *args, **kwargs)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_the_prior_can_be_had_on_purpose():
    assert pf.from_numpyro(schools, SIGMA, y=None).parameters.names == ("mu", "obs")


def test_odd_supports_shapes_and_arguments():
    def model(groups):
        n = int(groups.max()) + 1  # needs the values, so the data cannot be arguments of the program
        numpyro.sample("angle", dist.VonMises(0.0, 1.0))
        numpyro.sample("cut", dist.TruncatedNormal(low=-1.0).expand([n]).to_event(1))
        numpyro.sample("w", dist.Dirichlet(jnp.ones(3)).expand([2]))
        numpyro.sample("flat", dist.ImproperUniform(dist.constraints.positive, (), ()))
        numpyro.sample("L", dist.LKJCholesky(3, 2.0))

    target = pf.from_numpyro(model, np.array([0, 2, 1]))
    kinds = {item.name: (item.kind, item.shape) for item in target.parameters.items}
    assert kinds == {
        "angle": ("interval", ()), "cut": ("greater_than", (3,)), "w": ("simplex", (2, 3)),
        "flat": ("positive", ()), "L": ("corr_cholesky", (3, 3)),
    }  # fmt: skip
    x = jax.random.normal(jax.random.key(2), (target.dim,))
    free = {item.name: piece for item, piece in target.parameters._pieces(x)}
    theirs = potential_energy(model, (np.array([0, 2, 1]),), {}, free)
    np.testing.assert_allclose(target.log_density(x), -theirs, rtol=1e-5)


EXAMPLES = {
    "unknown name": ({"example": {"tau": 1.0}, "constraints": {"tua": "positive"}}, "Did you mean 'tau'"),
    "simplex of a number": ({"example": {"w": 1.0}, "constraints": {"w": "simplex"}}, "'w'"),
    "no example": ({"constraints": {"w": "simplex"}}, "`constraints` needs `example`"),
    "neither": ({}, "`dim` or `example` must be given"),
    "empty": ({"example": {}}, "at least one array"),
    "text": ({"example": {"a": "b"}}, "'a' must be an array of real numbers"),
    "list of constraints": ({"example": {"a": 1.0}, "constraints": ["positive"]}, "must map names"),
    "another dim": ({"example": {"a": 1.0}, "dim": 3}, "or be 1; got 3"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_that_make_no_sense(name):
    arguments, words = EXAMPLES[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        pf.Target.from_log_density(lambda p: 0.0, **arguments)
    assert words in str(caught.value)


def test_nested_and_single_examples():
    nested = pf.Target.from_log_density(
        lambda p: -0.5 * p["group"]["sd"] ** 2 - 0.5 * jnp.sum(p["rest"][0] ** 2),
        example={"group": {"sd": 1.0}, "rest": (np.zeros(2),)},
        constraints={"group": {"sd": "positive"}},
    )
    assert nested.parameters.names == ("group.sd", "rest.0")
    x = jnp.array([0.3, 1.0, 2.0])
    np.testing.assert_allclose(nested.log_density(x), -0.5 * np.exp(0.6) - 2.5 + 0.3, rtol=1e-6)
    single = pf.Target.from_log_density(
        lambda w: jnp.sum(jnp.log(w)), example=np.ones(3), constraints="simplex"
    )
    assert (single.dim, single.parameters.names) == (2, ("x",))


PYMC = {
    "discrete": (lambda pm: (pm.Bernoulli("k", 0.5), pm.Normal("a")), ("'k'", "discrete", "pm.Mixture")),
    "nothing free": (lambda pm: pm.Normal("a", observed=1.0), ("no free variable", "'a'")),
    "moving support": (
        lambda pm: pm.Uniform("b", 0, pm.HalfNormal("a")),
        ("'b'", "depend on other variables"),
    ),
    "rows that differ": (
        lambda pm: pm.Normal("obs", pm.Normal("a", shape=3), 1, observed=np.ones(4)),
        ("(4,), (3,)", "shapes that go together"),
    ),
    "unknown transform": (lambda pm: pm.LKJCorr("c", n=3, eta=1), ("'c'", "no map here")),
}


@pytest.mark.parametrize("name", PYMC)
def test_pymc_models_that_cannot_be_used(name):
    import pymc

    build, words = PYMC[name]
    with pymc.Model() as model:
        build(pymc)
    with pytest.raises(ValueError, match="`model`") as caught:
        pf.from_pymc(model)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_what_is_no_pymc_model():
    with pytest.raises(TypeError, match=r"must be a pymc\.Model; got function\. A NumPyro model goes to"):
        pf.from_pymc(schools)


def test_pymcs_supports_against_its_own_density():
    import pymc as pm
    import pytensor.tensor as pt

    with pm.Model() as model:
        pm.Uniform("u", -1, 3)
        pm.Dirichlet("w", np.ones(3))
        pm.Normal("o", 0, 1, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1, 0, 1])
        pm.LKJCholeskyCov("c", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0), compute_corr=False)
        pm.ZeroSumNormal("z", shape=4)
        pm.TruncatedNormal("t", 0, 1, lower=-1)
        slope = pm.Normal("slope")
        data = pm.Data("data", np.linspace(0, 1, 40))
        pm.Bernoulli("obs", logit_p=slope * data, observed=np.arange(40) % 2)
        pm.Potential("extra", -(slope**2))
    target = pf.from_pymc(model)
    kinds = {item.name: item.kind for item in target.parameters.items}
    assert kinds == {
        "u": "interval", "w": "simplex", "o": "ordered", "c": "packed_cholesky", "z": "zero_sum",
        "t": "greater_than", "slope": "real",
    }  # fmt: skip
    assert any(leaf.shape == (40,) for leaf in jax.tree.leaves(target) if isinstance(leaf, jax.Array))
    x = np.random.default_rng(0).normal(size=(3, target.dim)).astype(np.float32)
    values = target.parameters.constrain(x)
    ours = np.asarray(jax.vmap(target.log_density)(x)) - target.parameters.log_det(x)
    theirs = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    for row in range(3):
        point = {}
        for rv in model.free_RVs:
            value, transform = pt.as_tensor(values[rv.name][row].astype(float)), model.rvs_to_transforms[rv]
            free = (value if transform is None else transform.forward(value, *rv.owner.inputs)).eval()
            point[model.rvs_to_values[rv].name] = free
        np.testing.assert_allclose(ours[row], theirs(point), rtol=1e-4)
