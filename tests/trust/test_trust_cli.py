"""`pushforward check`: what it reads, what it prints, what it refuses."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from pushforward.cli import app
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import MLP
from pushforward.sampler import Sampler

IDENTITY = MLP((jnp.eye(2),), (jnp.zeros(2),), "silu", skip=False)


@pytest.fixture
def invoke():
    runner = CliRunner()
    return lambda *words: runner.invoke(app, ["check", *map(str, words)])


@pytest.fixture
def saved(tmp_path):
    """A sampler on disk that says it was fitted to the built-in Gaussian."""
    path = tmp_path / "mine.pf"
    Sampler(Normal(2), IDENTITY, Frame.identity(2), json.dumps({"target": "gaussian"})).save(path)
    return path


def test_a_saved_sampler_is_held_against_the_target_it_names(invoke, saved, tmp_path):
    page = tmp_path / "check.html"
    result = invoke(saved, "--html", page, "--draws", 500)
    assert result.exit_code == 0, result.output
    # The sampler is a standard normal, the target is not: the verdict, the draws judged, and the advice.
    words = " ".join(result.output.split())
    assert "do not trust" in words
    assert "gaussian" in words
    assert "500 draws" in words
    assert "<figure>" in page.read_text()
    assert "http" not in page.read_text()


# What lies nowhere near a target is refused before anything dear is computed.
LOST = ("--target", "mog2")


@pytest.fixture
def lost(tmp_path):
    """A file of draws that are no numbers."""
    np.save(tmp_path / "chain.npy", np.full((300, 2), np.nan))
    return tmp_path / "chain.npy"


def test_json_is_json_and_strict_is_strict(invoke, lost):
    result = invoke(lost, *LOST, "--json", "--strict")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["verdict"] == "do not trust"
    assert invoke(lost, *LOST, "--json").exit_code == 0


def test_draws_of_a_file_and_a_reference(invoke, lost, tmp_path):
    np.savez(tmp_path / "truth.npz", draws=np.ones((300, 2)), other=np.ones(3))
    result = invoke(lost, *LOST, "--reference", tmp_path / "truth.npz", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["target"], report["num_draws"]) == ("mog2", 300)
    np.savez(tmp_path / "wide.npz", draws=np.ones((300, 3)), other=np.ones(3))
    result = invoke(lost, *LOST, "--reference", tmp_path / "wide.npz")
    assert result.exit_code == 2
    assert "`reference`" in result.output


def test_a_models_data_are_given_again(invoke, tmp_path):
    Sampler(Normal(2), IDENTITY, Frame.identity(2), json.dumps({"target": "within"})).save(tmp_path / "s.pf")
    text = "import jax.numpy as jnp\ndef within(x, edge):\n    return jnp.where(x @ x < edge, -0.5 * x @ x, -jnp.inf)\n"
    (tmp_path / "model.py").write_text(text)
    # No draw lies within the edge that the data say.
    np.savez(tmp_path / "edge.npz", edge=np.array(0.0))
    words = (tmp_path / "s.pf", "--target", f"{tmp_path / 'model.py'}:within", "--json")
    result = invoke(*words, "--data", tmp_path / "edge.npz")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["target"], report["verdict"]) == ("within", "do not trust")
    assert [line["name"] for line in report["lines"]] == ["support"]
    assert invoke(*words, "--data", tmp_path / "none.npz").exit_code == 2


def test_what_makes_no_sense_is_refused(invoke, saved, tmp_path):
    np.save(tmp_path / "chain.npy", np.zeros((300, 2)))
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.ones(2))
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    for name in ("model.py:log_density", "unheard_of"):
        path = tmp_path / f"{name[:5]}.pf"
        Sampler(Normal(2), IDENTITY, Frame.identity(2), json.dumps({"target": name})).save(path)
        result = invoke(path)
        assert result.exit_code == 2
        assert "--target is needed" in result.output
    for words, said in [
        ((tmp_path / "chain.npy",), "--target is needed"),
        ((tmp_path / "none.npy", "--target", "mog2"), "no file"),
        ((tmp_path / "two.npz", "--target", "mog2"), "a, b"),
        ((tmp_path / "broken.npy", "--target", "mog2"), "not a file of `numpy.save`"),
        ((saved, "--reference", saved), "draws are read from .npz, .npy"),
    ]:
        result = invoke(*words)
        assert result.exit_code == 2, result.output
        assert said in result.output
