"""onnxruntime, without JAX, makes of the same latents what JAX makes of them; the file says what to feed it."""

import json
import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest
from runtime_cases import ABOUT, SAMPLERS, by_jax, error, modulated, named

from pushforward import runtime
from pushforward.sampler import Sampler


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def draws(path, latents):
    return session(path).run(["draws"], {"latents": latents})[0]


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_same_latents_give_the_same_draws(name, tmp_path):
    sampler = SAMPLERS[name]()
    sampler.export(tmp_path / "s.onnx")
    latents = np.random.default_rng(0).normal(size=(2053, sampler.latent.dim)).astype(np.float32)
    found = draws(tmp_path / "s.onnx", latents)
    assert error(found, by_jax(sampler, latents)) < 1e-5
    # Any number of rows, among them none.
    np.testing.assert_allclose(draws(tmp_path / "s.onnx", latents[:1]), found[:1], rtol=1e-5, atol=1e-4)
    assert draws(tmp_path / "s.onnx", latents[:0]).shape == (0, sampler.dim)


@pytest.mark.parametrize("name", ["modulated", "elu", "leaky_relu", "gelu"])
def test_double_precision(name, tmp_path):
    with jax.enable_x64(True):
        sampler = SAMPLERS[name]()
        sampler.export(tmp_path / "s.onnx")
        latents = np.random.default_rng(0).normal(size=(100, sampler.latent.dim))
        assert error(draws(tmp_path / "s.onnx", latents), by_jax(sampler, latents)) < 1e-11


def test_a_planted_error_is_seen(tmp_path):
    sampler = SAMPLERS["silu"]()
    wrong = eqx.tree_at(lambda s: s.network.weights[1], sampler, sampler.network.weights[1] * 1.0002)
    wrong.export(tmp_path / "s.onnx")
    latents = np.random.default_rng(0).normal(size=(500, 5)).astype(np.float32)
    assert error(draws(tmp_path / "s.onnx", latents), by_jax(sampler, latents)) > 1e-5


ALONE = """
import json, sys
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
law = json.loads(session.get_modelmeta().custom_metadata_map["latent"])
latents = np.random.default_rng(0).normal(size=(10, len(law["means"][0]))).astype(np.float32)
draws = session.run(None, {"latents": latents})[0]
assert draws.shape == (10, 3) and np.isfinite(draws).all()
sys.exit("jax" in sys.modules or "pushforward" in sys.modules)
"""


def test_it_runs_without_jax_and_without_us(tmp_path):
    modulated().export(tmp_path / "s.onnx")
    words = [sys.executable, "-c", ALONE, str(tmp_path / "s.onnx")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_metadata_hold_the_law_and_the_story(tmp_path):
    sampler = modulated()
    sampler.export(tmp_path / "s.onnx")
    model = onnx.load(tmp_path / "s.onnx")
    words = {prop.key: prop.value for prop in model.metadata_props}
    assert (words["format"], json.loads(words["about"]), "parameters" in words) == (
        "pushforward",
        ABOUT,
        False,
    )
    law = runtime.law(json.loads(words["latent"]))
    for name in ("weights", "means", "choleskys"):
        np.testing.assert_array_equal(
            np.asarray(getattr(law, name), np.float32), getattr(sampler.latent, name)
        )
    sampler.save(tmp_path / "s.pf")
    light = runtime.load(tmp_path / "s.pf")
    z = law.sample(np.random.default_rng(5), 1024)
    np.testing.assert_allclose(z, light.latent.sample(np.random.default_rng(5), 1024), atol=1e-5)
    (shape,) = [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input]
    assert shape == ["n", 3]
    named().export(tmp_path / "n.onnx")
    words = {prop.key: prop.value for prop in onnx.load(tmp_path / "n.onnx").metadata_props}
    assert words["parameters"] == named().parameters.to_json()


def test_writing_replaces_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "s.onnx"
    named().export(path)
    before = path.read_bytes()

    def broken(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="the disk is full"):
        modulated().export(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["s.onnx"]


def test_bad_paths(tmp_path):
    sampler = named()
    with pytest.raises(ValueError, match=r"`path` must end in `\.onnx`; got .*s\.pf"):
        sampler.export(tmp_path / "s.pf")
    with pytest.raises(FileNotFoundError, match=r"there is no .*missing"):
        sampler.export(tmp_path / "missing" / "s.onnx")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        sampler.export(tmp_path / "folder.onnx")


class Doubling(eqx.Module):
    """A network that nobody has written operators for."""

    in_size: int = eqx.field(static=True, default=2)
    out_size: int = eqx.field(static=True, default=2)

    def __call__(self, z):
        return 2.0 * z


def test_what_cannot_be_exported(tmp_path, monkeypatch):
    parts = named()
    with pytest.raises(TypeError, match="must be an MLP, Modulated or Coupled to be exported; got Doubling"):
        Sampler(parts.latent, Doubling(), parts.frame).export(tmp_path / "s.onnx")
    broken = eqx.tree_at(lambda s: s.frame.scale, parts, jnp.asarray([1.0, jnp.inf]))
    with pytest.raises(ValueError, match="values that are not finite"):
        broken.export(tmp_path / "s.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ImportError, match=r"`onnx`, which is not installed.*pip install 'pushforward\[export\]'"
    ):
        parts.export(tmp_path / "s.onnx")
    assert os.listdir(tmp_path) == []
