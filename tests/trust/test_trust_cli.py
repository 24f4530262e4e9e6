"""`pushforward check`: what it reads, what it prints, what it refuses."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from pushforward import trust
from pushforward.cli import app
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import MLP
from pushforward.sampler import Sampler
from pushforward.trust.line import Line
from pushforward.trust.report import Pictures, Report


@pytest.fixture
def asked(monkeypatch):
    """Put a finished report in the place of a check, and keep what it was asked for."""
    calls = []
    x = np.random.default_rng(0).normal(size=(300, 2))
    flagged = Line(
        name="stein",
        title="Stein",
        statistic=9.0,
        measure="|z|",
        null="normal",
        p_value=1e-9,
        found="Off.",
        advice="Mend.",
    )

    def check(key, sampler, target, **options):
        calls.append((sampler, target, options))
        pictures = Pictures(x, x, x[:, 0], x[:, 0])
        return Report(
            target=target.name, kind="array", num_draws=300, num_judged=300, level=0.03, lines=(flagged,),
            seconds=1.0, pictures=pictures,
        )  # fmt: skip

    monkeypatch.setattr(trust, "check", check)
    return calls


@pytest.fixture
def invoke():
    runner = CliRunner()
    return lambda *words: runner.invoke(app, ["check", *map(str, words)])


@pytest.fixture
def saved(tmp_path):
    """A sampler on disk that says it was fitted to the built-in Gaussian."""
    path = tmp_path / "mine.pf"
    net = MLP((jnp.eye(2),), (jnp.zeros(2),), "silu", skip=False)
    Sampler(Normal(2), net, Frame.identity(2), json.dumps({"target": "gaussian"})).save(path)
    return path


def test_a_saved_sampler_is_held_against_the_target_it_names(invoke, saved, asked, tmp_path):
    page = tmp_path / "check.html"
    result = invoke(saved, "--html", page, "--draws", 500)
    assert result.exit_code == 0, result.output
    assert "caution" in result.output
    assert "Mend." in result.output
    sampler, target, options = asked[0]
    assert isinstance(sampler, Sampler)
    assert target.name == "gaussian"
    assert options["settings"].num_draws == 500
    assert "<figure>" in page.read_text()
    assert "http" not in page.read_text()


def test_json_is_json_and_strict_is_strict(invoke, saved, asked):
    result = invoke(saved, "--json", "--strict")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["verdict"] == "caution"


def test_draws_of_a_file_and_a_reference(invoke, asked, tmp_path):
    np.save(tmp_path / "chain.npy", np.zeros((300, 2)))
    np.savez(tmp_path / "truth.npz", draws=np.ones((300, 2)), other=np.ones(3))
    result = invoke(tmp_path / "chain.npy", "--target", "mog2", "--reference", tmp_path / "truth.npz")
    assert result.exit_code == 0, result.output
    draws, target, options = asked[0]
    assert draws.shape == options["reference"].shape == (300, 2)
    assert target.name == "mog2"


def test_a_models_data_are_given_again(invoke, saved, asked, tmp_path):
    (tmp_path / "model.py").write_text("def scaled(x, scale):\n    return -0.5 * ((x / scale) ** 2).sum()\n")
    np.savez(tmp_path / "scale.npz", scale=np.array([1.0, 2.0]))
    words = (saved, "--target", f"{tmp_path / 'model.py'}:scaled")
    result = invoke(*words, "--data", tmp_path / "scale.npz")
    assert result.exit_code == 0, result.output
    assert float(asked[0][1].log_density(jnp.array([0.0, 2.0]))) == -0.5
    assert invoke(*words, "--data", tmp_path / "none.npz").exit_code == 2


def test_what_makes_no_sense_is_refused(invoke, saved, asked, tmp_path):
    np.save(tmp_path / "chain.npy", np.zeros((300, 2)))
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.ones(2))
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    net = MLP((jnp.eye(2),), (jnp.zeros(2),), "silu", skip=False)
    for name in ("model.py:log_density", "unheard_of"):
        path = tmp_path / f"{name[:5]}.pf"
        Sampler(Normal(2), net, Frame.identity(2), json.dumps({"target": name})).save(path)
        result = invoke(path)
        assert result.exit_code == 2
        assert "--target is needed" in result.output
    for words, said in [
        ((tmp_path / "chain.npy",), "--target is needed"),
        ((tmp_path / "none.npy", "--target", "mog2"), "no file"),
        ((tmp_path / "two.npz", "--target", "mog2"), "a, b"),
        ((tmp_path / "broken.npy", "--target", "mog2"), "does not hold an array"),
        ((saved, "--reference", saved), ".npy or .npz"),
    ]:
        result = invoke(*words)
        assert result.exit_code == 2, result.output
        assert said in result.output
    assert not asked
