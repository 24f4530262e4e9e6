"""Models of NumPyro and PyMC on the command line, and the formats that named draws are written in."""

import json

import jax
import numpy as np
import pytest

import pushforward as pf
from pushforward.cli.errors import CommandError
from pushforward.cli.models import read_data
from pushforward.cli.specs import find_target
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.parameters import Parameter, Parameters
from pushforward.sampler import Sampler

MODEL = """
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import pushforward as pf

def model(y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    numpyro.sample("obs", dist.Normal(mu, tau), obs=y)

def fixed():
    numpyro.sample("obs", dist.Normal(numpyro.sample("mu", dist.Normal(0, 5)), 1), obs=1.0)

def needs(y):
    return model(y)

def with_data(x, scale):
    return -0.5 * jnp.sum((x / scale) ** 2)

def target():
    return pf.from_numpyro(fixed)

def of_pymc():
    import pymc as pm
    with pm.Model() as model:
        pm.Normal("a", 0, 1)
    return model
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "model.py").write_text(MODEL)
    np.savez(folder / "data.npz", y=np.array([1.0, 2.0, 3.0]))
    np.savez(folder / "scale.npz", scale=np.array([1.0, 2.0]))
    return folder


def test_models_are_found(folder):
    file, data = folder / "model.py", read_data(folder / "data.npz")
    assert find_target(f"{file}:model", None, data).parameters.names == ("mu", "tau")
    assert find_target(f"{file}:needs", None, data).dim == 2
    assert find_target(f"{file}:fixed", None).parameters.names == ("mu",)
    assert find_target(f"{file}:target", None).parameters.names == ("mu",)
    assert find_target(f"{file}:of_pymc", None).parameters.names == ("a",)
    bound = find_target(f"{file}:with_data", 2, read_data(folder / "scale.npz"))
    np.testing.assert_allclose(bound.log_density(jax.numpy.ones(2)), -0.625)


def test_what_is_wrong_with_a_model_is_one_message(folder):
    file = folder / "model.py"
    with pytest.raises(CommandError, match="its data are missing"):
        find_target(f"{file}:model", None)
    with pytest.raises(CommandError, match=r"--data FILE\.npz"):
        find_target(f"{file}:needs", None)
    with pytest.raises(CommandError, match="--data holds scale, for which"):
        find_target(f"{file}:model", None, read_data(folder / "scale.npz"))
    with pytest.raises(CommandError, match="is built in"):
        find_target("rosenbrock", None, {"y": 1})
    with pytest.raises(CommandError, match=r"must be a \.npz file"):
        read_data(folder / "data.txt")
    (folder / "broken.npz").write_bytes(b"PK")
    with pytest.raises(CommandError, match=r"--data: .*broken\.npz"):
        read_data(folder / "broken.npz")


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    record = Parameters((Parameter("tau", (), "positive"), Parameter("w", (3,), "simplex")))
    network = mlp(jax.random.key(0), 3, 3, width=4, depth=1, activation="silu", skip=True)
    sampler = Sampler(Normal(3), network, Frame.identity(3), json.dumps({"target": "t"}), record)
    path = tmp_path_factory.mktemp("named") / "s.pf"
    sampler.save(path)
    return path


@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet", "nc", "csv"])
def test_named_draws_are_written_in_every_format(invoke, named, tmp_path, suffix):
    out = tmp_path / f"d.{suffix}"
    result = invoke("sample", named, "-n", 5000, "--seed", 3, "--out", out)
    assert result.exit_code == 0, result.output
    expected = pf.load(named).draws(jax.random.key(3), 5000)
    if suffix == "csv":
        assert out.read_text().splitlines()[0] == "tau,w[0],w[1],w[2]"
        expected.save(tmp_path / "python.csv")
        assert out.read_bytes() == (tmp_path / "python.csv").read_bytes()
    found = pf.load_draws(out)
    np.testing.assert_array_equal(found["tau"], expected["tau"])
    np.testing.assert_array_equal(found["w"], expected["w"])


def test_free_coordinates_are_a_plain_array(invoke, named, tmp_path):
    assert invoke("sample", named, "-n", 10, "--free", "--out", tmp_path / "d.npy", "-q").exit_code == 0
    expected = pf.load(named).sample(jax.random.key(1), 10)
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), expected)
    result = invoke("sample", named, "-n", 10, "--shard", "1/2", "--out", tmp_path / "p.npy")
    assert result.exit_code == 2
    assert "--free" in result.stderr


def test_thinning_and_refining_need_the_target(invoke, named, run_folder, tmp_path):
    out = tmp_path / "d.npz"
    for option in ("--thin", "--refine"):
        result = invoke("sample", named, "-n", 10, option, 2, "--out", out)
        assert (result.exit_code, f"{option} needs the target" in result.stderr) == (2, True)
    result = invoke("sample", named, "-n", 10, "--thin", 2, "--target", "rosenbrock", "--out", out)
    assert "has 2 coordinates; the sampler has 3" in result.stderr
    assert not out.exists()
    result = invoke("sample", run_folder, "-n", 200, "--refine", 2, "--thin", 20, "--out", out)
    assert result.exit_code == 0, result.output
    assert "2 MALA steps accepted" in result.stderr
    assert pf.load_draws(out)["x"].shape == (20, 2)
