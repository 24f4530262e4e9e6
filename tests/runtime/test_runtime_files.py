"""The NumPy reader refuses what `pushforward.load` refuses, needs no JAX, and says what was wrong."""

import json
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
from runtime_cases import SAMPLERS, modulated, named

import pushforward as pf
from pushforward import container, runtime

LIGHT = """
import sys
import pushforward.runtime as runtime
sampler = runtime.load(sys.argv[1])
draws = sampler.draws(0, 10)
assert sampler.sample(0, 10).shape == (10, sampler.dim)
heavy = {"jax", "jaxlib", "equinox", "scipy", "safetensors", "matplotlib", "rich", "jaxtyping"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "s.pf"
    modulated(dim=2).save(path)
    return path


def test_neither_import_nor_drawing_needs_jax(tmp_path):
    named().save(tmp_path / "s.pf")
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, str(tmp_path / "s.pf")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def refused_by_both(path):
    for load in (runtime.load, pf.load):
        with pytest.raises(pf.BadFileError) as caught:
            load(path)
        assert str(path) in str(caught.value)


def test_truncations_and_flipped_bits(saved):
    data = saved.read_bytes()
    for length in (0, 7, 8, 100, len(data) // 2, len(data) - 1):
        saved.write_bytes(data[:length])
        refused_by_both(saved)
    saved.write_bytes(data + b"\0")
    refused_by_both(saved)
    for place in range(0, len(data), 97):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        saved.write_bytes(changed)
        with pytest.raises(runtime.BadFileError):
            runtime.load(saved)
    saved.write_bytes(data)
    runtime.load(saved)


def forge(path, change):
    """Write the file again, changed, with a checksum that is right."""
    body, tensors = container.read(path)
    body, tensors = json.loads(body), {name: array.copy() for name, array in tensors.items()}
    change(body["structure"], tensors)
    text = json.dumps(body)
    words = {"format": "pushforward", "version": "1", "body": text, "sha256": container.digest(text, tensors)}
    path.write_bytes(safetensors.numpy.save(tensors, metadata=words))


def change_field(part, field, value):
    return lambda structure, tensors: structure[part]["fields"].update({field: value})


FORGERIES = {
    "unknown module": lambda s, t: s["network"].update(module="system"),
    "a law for a network": lambda s, t: s.update(network={"module": "Normal", "fields": {"size": {"value": 2}}}),
    "missing part": lambda s, t: s.pop("frame"),
    "another part": lambda s, t: s.update(more={"value": 1}),
    "unused array": lambda s, t: t.update(extra=np.zeros(2, np.float32)),
    "not a number": lambda s, t: t["frame.scale"].fill(np.nan),
    "weights below zero": lambda s, t: t["latent.weights"].fill(-1.0),
    "wrong shape": lambda s, t: t.update({"frame.bend": np.zeros(3, np.float32)}),
    "layers that do not chain": lambda s, t: t.update({"network.net.weights.0": np.zeros((5, 2), np.float32)}),
    "a number for an array": change_field("frame", "scale", {"value": 1.0}),
    "text for a law": lambda s, t: s.update(latent="tensor"),
    "sizes that do not fit": lambda s, t: s.update(latent={"module": "Normal", "fields": {"size": {"value": 9}}}),
    "names that are none": lambda s, t: s.update(parameters={"value": "{}"}),
    "names of other sizes": lambda s, t: s.update(parameters={"value": named().parameters.to_json()[:-1]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(saved, name):
    forge(saved, FORGERIES[name])
    with pytest.raises(runtime.BadFileError, match="does not describe a sampler"):
        runtime.load(saved)


def header(words, entries, data=b""):
    text = json.dumps({"__metadata__": words, **entries}).encode()
    return len(text).to_bytes(8, "little") + text + data


WORDS = {"format": "pushforward", "version": "1", "body": "{}", "sha256": "0" * 64}
CLAIMS = {
    "a header of exabytes": (2**60).to_bytes(8, "little") + b"{}",
    "an array of exabytes": header(WORDS, {"a": {"dtype": "F32", "shape": [2**30, 2**30], "data_offsets": [0, 2**62]}}),
    "a product that overflows": header(WORDS, {"a": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]}}),
    "a negative size": header(WORDS, {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"abcd"),
    "fractions": header(WORDS, {"a": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}}, b"abcd"),
    "truths": header(WORDS, {"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, b"abcd"),
    "many axes": header(WORDS, {"a": {"dtype": "F32", "shape": [1] * 99, "data_offsets": [0, 4]}}, b"abcd"),
    "arrays that overlap": header(WORDS, {n: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for n in "ab"}, b"abcd"),
    "a gap": header(WORDS, {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, b"abcdefgh"),
    "bytes of nobody": header(WORDS, {}, b"abcd"),
    "a name twice": b"\x19\0\0\0\0\0\0\0" + b'{"a": {}, "a": {}, "b":1}',
    "half a pair of surrogates": header({**WORDS, "body": "\ud800"}, {}),
    "no tensors": header(WORDS, {"a": 3}),
    "unhashable": header(WORDS, {"a": {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}}, b"abcd"),
    "depth": (200_000).to_bytes(8, "little") + b"[" * 200_000,
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_false_claims_are_refused_before_they_are_believed(tmp_path, name):
    path = tmp_path / "s.pf"
    path.write_bytes(CLAIMS[name])
    refused_by_both(path)


def test_missing_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        runtime.load(tmp_path / "nowhere.pf")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        runtime.load(tmp_path)
    with pytest.raises(runtime.BadFileError, match="not a regular file"):
        runtime.load("/dev/null")


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    from pushforward.sampler import Sampler

    parts = modulated(dim=2)
    talker = Sampler(parts.latent, parts.network, parts.frame, json.dumps({"story": "x" * 2**22}))
    with pytest.raises(ValueError, match="`about` must be shorter"):
        talker.save(tmp_path / "s.pf")


def test_bad_arguments(tmp_path):
    SAMPLERS["silu"]().save(tmp_path / "s.pf")
    light = runtime.load(tmp_path / "s.pf")
    for latents in (np.zeros(5), np.zeros((2, 3)), np.zeros((2, 5), complex), np.full((2, 5), "a")):
        with pytest.raises(ValueError, match=r"`latents` must be numbers of shape \(n, 5\)"):
            light(latents)
    assert light(np.zeros((0, 5))).shape == (0, 3)


BAD_LAWS = {
    "no mapping": [1],
    "no law": {"size": 2},
    "unknown law": {"law": "Cauchy", "size": 2},
    "no size": {"law": "Normal"},
    "size of none": {"law": "Normal", "size": 0},
    "shapes": {"law": "NormalMixture", "weights": [1.0], "means": [[0.0]], "choleskys": [[1.0]]},
    "ragged": {"law": "NormalMixture", "weights": [1.0], "means": [[0.0], [1.0, 2.0]], "choleskys": []},
}


@pytest.mark.parametrize("name", BAD_LAWS)
def test_laws_that_are_none(name, unhooked):
    with pytest.raises((ValueError, TypeError), match=r"`description`|`law` must be one of"):
        runtime.law(BAD_LAWS[name])


@pytest.mark.parametrize("rng", [-1, 1.5, True, None, "seed"])
def test_seeds_that_are_none(tmp_path, unhooked, rng):
    named().save(tmp_path / "s.pf")
    with pytest.raises(TypeError, match="`rng` must be a seed"):
        runtime.load(tmp_path / "s.pf").sample(rng, 3)
