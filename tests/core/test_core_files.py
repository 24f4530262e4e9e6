"""One file, no code: what was saved comes back bit by bit, and anything else is refused by name."""

import builtins
import importlib
import json
import os
import pickle
import stat

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import pushforward as pf
from pushforward import files
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Normal, NormalMixture, Uniform
from pushforward.networks import Identity, coupled, mlp, modulated
from pushforward.sampler import Sampler

KEY = jax.random.key(3)

LATENTS = {
    "normal": lambda: Normal(2),
    "uniform": lambda: Uniform(2),
    "mixture": lambda: NormalMixture(
        weights=jnp.asarray([0.2, 0.8]),
        means=jnp.asarray([[0.0, 1.0], [2.0, -3.0]]),
        choleskys=jnp.asarray([[[1.0, 0.0], [0.3, 0.7]], [[0.5, 0.0], [-0.2, 2.0]]]),
    ),
    "columns": lambda: IndependentMixtures(
        weights=jnp.asarray([[0.2, 0.8], [0.5, 0.5]]),
        means=jnp.asarray([[0.0, 1.0], [2.0, -3.0]]),
        scales=jnp.asarray([[1.0, 0.3], [0.5, 2.0]]),
    ),
}
NETWORKS = {
    "mlp": lambda: mlp(KEY, 2, 2, width=3, depth=1, activation="gelu", skip=True),
    "modulated": lambda: modulated(KEY, 2, width=3, depth=2),
    "coupled": lambda: coupled(KEY, 2, width=3, depth=1),
    "identity": lambda: Identity(2),
}
ABOUT = {"target": 'čau ☃ "x"\n', "metrics": {"ksd": 0.1, "none": None}, "list": [1, -2.5e-7, True]}


def frame():
    rows = ([1.0, -2.0], [0.3, 4.0], [0.0, 0.6], [0.1, -0.2])
    return Frame(*(jnp.asarray(row) for row in rows), matrix=jnp.asarray([[1.0, 0.0], [0.5, 2.0]]))


def sampler(latent="mixture", network="mlp"):
    return Sampler(LATENTS[latent](), NETWORKS[network](), frame(), json.dumps(ABOUT))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "sampler.pf"
    sampler().save(path)
    return path


def refuse(path, *words):
    """The file must be refused as bad, by name."""
    with pytest.raises(pf.BadFileError) as caught:
        pf.load(path)
    for word in (str(path), *words):
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("latent", LATENTS)
@pytest.mark.parametrize("network", NETWORKS)
def test_what_was_saved_comes_back_bit_by_bit(tmp_path, latent, network, double):
    with jax.enable_x64(double):
        before = sampler(latent, network)
        before.save(tmp_path / "s.pf")
        after = pf.load(str(tmp_path / "s.pf"))
        assert jax.tree.structure(before) == jax.tree.structure(after)
        for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        assert after.about == ABOUT


def test_draws_come_back_bit_by_bit(saved):
    np.testing.assert_array_equal(pf.load(saved).sample(KEY, 100), sampler().sample(KEY, 100))


def test_loading_executes_nothing(saved, monkeypatch, unhooked):
    pf.load(saved)  # whatever is imported late is imported now

    def executed(*args, **kwargs):
        raise AssertionError("loading a file executed something")

    with monkeypatch.context() as patch:
        for module, name in [(builtins, "eval"), (builtins, "exec"), (importlib, "import_module"),
                             (pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (os, "system")]:  # fmt: skip
            patch.setattr(module, name, executed)
        pf.load(saved)


# Saving


def test_saving_replaces_all_or_nothing(saved, monkeypatch):
    before = saved.read_bytes()

    def broken(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="the disk is full"):
        sampler("normal").save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_saving_where_it_cannot_be(tmp_path):
    missing = tmp_path / "missing"
    for path, save in ((missing / "s.pf", sampler().save), (missing / "d.csv", sampler().draws(KEY, 3).save)):
        with pytest.raises(FileNotFoundError, match=rf"there is no folder {missing} for {path}\. Make it"):
            save(path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder is a folder"):
        sampler().save(tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["folder"]


def test_a_saved_file_may_be_read_by_whom_the_user_lets(tmp_path):
    mask = os.umask(0o022)
    try:
        sampler().save(tmp_path / "s.pf")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "s.pf").stat().st_mode) == 0o644


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    broken = eqx.tree_at(lambda s: s.network.biases[0], sampler(), jnp.asarray([0.0, jnp.nan, 1.0]))
    with pytest.raises(ValueError, match=r"'network\.biases\.0' holds values that are not finite"):
        broken.save(tmp_path / "s.pf")
    odd = eqx.tree_at(lambda s: s.network.biases[0], sampler(), jnp.zeros(3, jnp.float16))
    with pytest.raises(TypeError, match=r"'network\.biases\.0' must be float32 or float64.*float16"):
        odd.save(tmp_path / "s.pf")
    foreign = eqx.tree_at(lambda s: s.network.biases[0], sampler(), [0.0, 0.0, 0.0])
    with pytest.raises(TypeError, match=r"'network\.biases\.0' holds a list, which cannot be saved"):
        foreign.save(tmp_path / "s.pf")
    assert os.listdir(tmp_path) == []


# Damaged and foreign files


def test_missing_and_folders(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"`path` must name a saved sampler; there is no file .*nowhere\.pf"
    ):
        pf.load(tmp_path / "nowhere.pf")
    with pytest.raises(
        IsADirectoryError,
        match=rf"`path` must name a saved sampler or the folder of a run; {tmp_path} is a folder",
    ):
        pf.load(tmp_path)
    with pytest.raises(pf.BadFileError, match=r"/dev/null is not a regular file"):
        pf.load("/dev/null")


def test_the_folder_of_a_run_has_a_sampler_in_it(saved):
    expected = pf.load(saved).sample(KEY, 5)
    np.testing.assert_array_equal(pf.load(saved.parent).sample(KEY, 5), expected)
    found = pf.runtime.load(saved.parent)
    assert found.dim == 2


@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet", "nc", "csv"])
def test_files_of_draws_are_no_samplers(tmp_path, suffix):
    path = tmp_path / f"d.{suffix}"
    sampler().draws(KEY, 5).save(path)
    words = (
        "does not begin as a file of `sampler.save`"
        if suffix == "csv"
        else "is not a sampler; it is .*load_draws"
    )
    with pytest.raises(pf.BadFileError, match=words):
        pf.load(path)


def test_every_truncation(saved):
    data = saved.read_bytes()
    for length in sorted({0, 1, 7, 8, 9, len(data) - 1, *range(0, len(data), 41)}):
        saved.write_bytes(data[:length])
        refuse(saved)
    saved.write_bytes(data + b"\0")
    refuse(saved)


def test_every_flipped_bit(saved):
    """One bit in every ninth byte of length, header and data, the bit changing from byte to byte."""
    data = saved.read_bytes()
    header = int.from_bytes(data[:8], "little")
    assert 8 + header < len(data) - 9
    for place in [*range(8), *range(8, len(data), 9)]:
        changed = bytearray(data)
        changed[place] ^= 1 << (place // 9 % 8)
        saved.write_bytes(changed)
        refuse(saved)
    saved.write_bytes(data)
    pf.load(saved)


def test_random_bytes(tmp_path):
    rng = np.random.default_rng(0)
    for n in (0, 1, 8, 9, 100, 10_000):
        (tmp_path / "s.pf").write_bytes(rng.bytes(n))
        refuse(tmp_path / "s.pf")
    (tmp_path / "s.pf").write_bytes(pickle.dumps({"weights": [1.0, 2.0]}))
    refuse(tmp_path / "s.pf", "truncated or another kind of file")


def test_another_safetensors_file(tmp_path):
    path = tmp_path / "s.pf"
    for metadata in (None, {"format": "pt"}, {"format": "pushforward"}):
        path.write_bytes(safetensors.numpy.save({"w": np.zeros(3, np.float32)}, metadata=metadata))
        refuse(path, "is a safetensors file but not a sampler", "sampler.save(path)")


def forge(path, change):
    """Write the file again with its parts changed and its checksum right: what only malice would make."""
    with safetensors.safe_open(path, framework="numpy") as file:
        header, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    body = json.loads(header["body"])
    body = change(body, tensors, header) or body
    header["body"] = body if isinstance(body, str) else json.dumps(body)
    header["sha256"] = files.digest(header["body"], tensors)
    path.write_bytes(safetensors.numpy.save(tensors, metadata=header))


def test_a_forged_file_that_changes_nothing_loads(saved):
    forge(saved, lambda body, tensors, header: None)
    assert pf.load(saved).about == ABOUT


def at(*path, value):
    """A change of one place of the structure."""

    def change(body, tensors, header):
        node = body
        for name in path[:-1]:
            node = node[name]
        if value is None:
            del node[path[-1]]
        else:
            node[path[-1]] = value

    return change


def nested(depth):
    node = '{"tuple": [' * depth + '{"value": 1}' + "]}" * depth
    return lambda body, tensors, header: '{"about": {}, "structure": {"latent": ' + node + "}}"


def empty(body, tensors, header):
    """A sampler of points without coordinates."""
    for name in list(tensors):
        if name.startswith("frame"):
            tensors[name] = tensors[name][:0, :0] if tensors[name].ndim == 2 else tensors[name][:0]
    tensors["network.weights.1"] = tensors["network.weights.1"][:0]
    tensors["network.biases.1"] = tensors["network.biases.1"][:0]


LATENT, NETWORK = ("structure", "latent"), ("structure", "network")
FORGERIES = {
    "version": (lambda b, t, h: h.update(version="2"), "format version '2'", "reads version 1"),
    "unknown module": (at(*LATENT, "module", value="system"), "module 'system' that this release does not know"),
    "module with a path": (at(*LATENT, "module", value="os.system"), "module 'os.system'"),
    "module of no name": (at(*LATENT, "module", value=["Normal"]),),
    "unknown field": (at(*LATENT, "fields", "code", value={"value": "import os"}), "code"),
    "missing field": (at(*LATENT, "fields", "weights", value=None),),
    "nested 20": (nested(20), "nested too deeply"),
    "nested 100,000": (nested(100_000),),
    "not a number": (lambda b, t, h: t["network.weights.0"].fill(np.nan), "network.weights.0", "not finite"),
    "infinite": (lambda b, t, h: t["frame.scale"].fill(np.inf), "frame.scale", "not finite"),
    "unused": (lambda b, t, h: t.update(extra=np.zeros(3, np.float32)), "arrays that nothing uses: extra"),
    "integers": (lambda b, t, h: t.update({"frame.scale": np.ones(2, np.int32)}), "'frame.scale' must be float32"),
    "half": (lambda b, t, h: t.update({"frame.scale": np.ones(2, np.float16)}), "must be float32 or float64"),
    "missing array": (lambda b, t, h: t.pop("frame.scale") is None or None, "frame.scale"),
    "array used twice": (at("structure", "frame", "fields", "bend", value={"tensor": "frame.scale"}),),
    "wrong shape": (lambda b, t, h: t.update({"frame.scale": np.ones(3, np.float32)}), "agree in size"),
    "layers that do not chain": (lambda b, t, h: t.update({"network.weights.0": np.ones((4, 2), np.float32)}), "chain"),
    "no layers": (at(*NETWORK, "fields", "weights", value={"tuple": []}),),
    "unknown activation": (at(*NETWORK, "fields", "activation", value={"value": "gelo"}), "Did you mean 'gelu'"),
    "a number for an array": (at("structure", "frame", "fields", "scale", value={"value": 1.0}),),
    "a list for a value": (at(*NETWORK, "fields", "skip", value={"value": [1]}), "neither text nor number"),
    "fractional size": (at(*LATENT, value={"module": "Normal", "fields": {"size": {"value": 2.0}}}),),
    "negative size": (at(*LATENT, value={"module": "Normal", "fields": {"size": {"value": -1}}}),),
    "no frame": (at("structure", "frame", value=None), "frame"),
    "too many parts": (at("structure", "more", value={"value": 1}), "not a latent, a network and a frame"),
    "latent that is none": (at(*LATENT, value={"value": 1}),),
    "network that is none": (at(*NETWORK, value={"module": "Normal", "fields": {"size": {"value": 2}}}),),
    "structure that is a list": (at("structure", value=[1, 2]),),
    "node that is text": (at(*LATENT, value="tensor"),),
    "node that is nothing": (at(*LATENT, value={}),),
    "about that is a number": (at("about", value=3),),
    "body that is not JSON": (lambda b, t, h: "{", "does not describe a sampler"),
    "body that is a list": (lambda b, t, h: "[]",),
    "sizes that do not fit": (at(*LATENT, value={"module": "Normal", "fields": {"size": {"value": 3}}}),),
    "no coordinates": (empty, "must fit"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_files_are_refused(saved, unhooked, name):
    change, *words = FORGERIES[name]
    forge(saved, change)
    refuse(saved, *words)
