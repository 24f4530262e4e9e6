"""Files of draws: round trips of every format, atomic writing, and files that are not what they should be."""

import os
import pickle

import jax
import numpy as np
import pytest

import pushforward as pf
from pushforward.parameters import Parameter, Parameters

RECORD = Parameters(
    (
        Parameter("mu"),
        Parameter("tau", (), "positive"),
        Parameter("w", (2, 3), "simplex", dims=("school", "part")),
    ),
    coords=(("school", ("A", "B")),),
)
FORMATS = ("npz", "npy", "parquet", "nc")


def made(record=RECORD, n=40):
    x = np.random.default_rng(0).normal(size=(n, record.dim)).astype(np.float32)
    stats = {"acceptance": jax.device_put(np.linspace(0, 1, n, dtype=np.float32))}
    return pf.Draws.of(jax.device_put(x), record, {"target": "čau", "latents": "iid"}, stats)


@pytest.mark.parametrize("suffix", FORMATS)
def test_round_trips(tmp_path, suffix):
    before, path = made(), tmp_path / f"draws.{suffix}"
    before.save(path)
    assert os.listdir(tmp_path) == [path.name]
    after = pf.load_draws(path, like=None if suffix != "npy" else before.parameters)
    assert after.names == before.names
    for name in before.names:
        np.testing.assert_array_equal(after[name], before[name])
        assert after[name].dtype == before[name].dtype
    exact = suffix in ("npz", "nc")
    np.testing.assert_allclose(after.unconstrained, before.unconstrained, rtol=0, atol=0 if exact else 1e-4)
    assert after.parameters == before.parameters
    if suffix != "npy":  # a plain NumPy array has no room for a story
        assert after.about == before.about
        np.testing.assert_array_equal(after.stats["acceptance"], before.stats["acceptance"])


@pytest.mark.parametrize("suffix", FORMATS)
def test_round_trips_of_plain_draws(tmp_path, suffix):
    before = made(Parameters.plain(3))
    before.save(tmp_path / f"d.{suffix}")
    after = pf.load_draws(tmp_path / f"d.{suffix}")
    np.testing.assert_array_equal(after["x"], before["x"])
    np.testing.assert_array_equal(after.unconstrained, before["x"])


def test_named_npy_files_say_so_when_coordinates_are_wanted(tmp_path):
    before = made()
    before.save(tmp_path / "d.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy")["w"], before["w"])
    with pytest.raises(ValueError, match="like=sampler"):
        _ = pf.load_draws(tmp_path / "d.npy").unconstrained
    other = Parameters((Parameter("sigma"),))
    with pytest.raises(ValueError, match="`like` has a parameter 'sigma'"):
        pf.load_draws(tmp_path / "d.npy", like=other)
    with pytest.raises(ValueError, match=r"'mu' must have shape \(2,\)"):
        pf.load_draws(tmp_path / "d.npy", like=Parameters((Parameter("mu", (2,)),)))


def test_other_programs_read_them_and_theirs_are_read(tmp_path):
    import pyarrow.parquet
    import xarray

    before = made()
    before.save(tmp_path / "d.parquet")
    names = pyarrow.parquet.read_table(tmp_path / "d.parquet").column_names
    assert names[:4] == ["mu", "tau", "w[0,0]", "w[0,1]"]
    before.save(tmp_path / "d.nc")
    with xarray.open_dataset(tmp_path / "d.nc", group="posterior", engine="h5netcdf") as data:
        assert data["w"].dims == ("chain", "draw", "school", "part")
    theirs = xarray.Dataset({"a": (("chain", "draw"), np.arange(6.0).reshape(2, 3))})
    theirs.to_netcdf(tmp_path / "theirs.nc", group="posterior", engine="h5netcdf")
    np.testing.assert_array_equal(pf.load_draws(tmp_path / "theirs.nc")["a"], np.arange(6.0))
    np.savez(tmp_path / "theirs.npz", a=np.zeros((4, 2)), b=np.ones(4))
    assert pf.load_draws(tmp_path / "theirs.npz").names == ("a", "b")


@pytest.mark.parametrize("suffix", FORMATS)
def test_damaged_files_are_refused_by_name(tmp_path, suffix):
    path = tmp_path / f"draws.{suffix}"
    made().save(path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 1, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(pf.BadFileError, match="draws"):
            pf.load_draws(path)
    for foreign in (rng.bytes(2000), pickle.dumps([1, 2]), b"mu,tau\n1,2\n"):
        path.write_bytes(foreign)
        with pytest.raises(pf.BadFileError, match="draws"):
            pf.load_draws(path)
    # Flipped bits either are seen, or leave draws of the same shapes: never another error, never a crash.
    for _ in range(25):
        changed = bytearray(data)
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        try:
            found = pf.load_draws(path)
        except pf.BadFileError:
            continue
        assert len(found) >= 1


def test_objects_and_bombs_are_refused(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], object), allow_pickle=True)
    np.savez(tmp_path / "o.npz", a=np.array([{"a": 1}], object))
    with open(tmp_path / "huge.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 4)}
        )
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(3 * 10**7, np.uint8))
    np.savez(tmp_path / "uneven.npz", a=np.zeros(3), b=np.zeros(4))
    for name in ("o.npy", "o.npz", "huge.npy", "bomb.npz", "uneven.npz"):
        with pytest.raises(pf.BadFileError, match=name.split(".")[0]):
            pf.load_draws(tmp_path / name)


def test_a_netcdf_file_that_points_elsewhere_is_refused(tmp_path):
    import h5py

    made().save(tmp_path / "secret.nc")
    with h5py.File(tmp_path / "link.nc", "w") as file:
        file["posterior"] = h5py.ExternalLink(str(tmp_path / "secret.nc"), "posterior")
    with pytest.raises(pf.BadFileError, match="points elsewhere"):
        pf.load_draws(tmp_path / "link.nc")


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "d.npz"
    path.write_bytes(b"before")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        made().save(path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["d.npz"]


def test_paths_that_cannot_be(tmp_path):
    with pytest.raises(
        ValueError, match=r"`path` must end in \.npz, \.npy, \.csv, \.parquet, \.nc; got 'd\.txt'"
    ):
        made().save(tmp_path / "d.txt")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        pf.load_draws(tmp_path / "none.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        pf.load_draws(tmp_path / "folder.npz")
    with pytest.raises(ValueError, match="_about"):
        pf.Draws.of(jax.numpy.zeros((2, 1)), Parameters((Parameter("_about", (1,)),))).save(
            tmp_path / "d.npz"
        )


# Text


def test_round_trips_of_text(tmp_path):
    before, path = made(), tmp_path / "draws.csv"
    before.save(path)
    assert os.listdir(tmp_path) == ["draws.csv"]
    assert path.read_text().splitlines()[0] == 'mu,tau,"w[0,0]","w[0,1]","w[0,2]","w[1,0]","w[1,1]","w[1,2]"'
    after = pf.load_draws(path, like=before.parameters)
    assert after.names == before.names
    for name in before.names:
        np.testing.assert_array_equal(after[name], before[name])
    np.testing.assert_allclose(after.unconstrained, before.unconstrained, atol=1e-4)
    with pytest.raises(ValueError, match="like=sampler"):
        _ = pf.load_draws(path).unconstrained
    pandas = pytest.importorskip("pandas")
    np.testing.assert_array_equal(pandas.read_csv(path)["tau"].astype(np.float32), before["tau"])
    before.to_pandas().to_csv(path, index=False)
    np.testing.assert_allclose(pf.load_draws(path)["w"], before["w"], rtol=1e-6)


def test_text_of_draws_without_names_is_read_as_coordinates(tmp_path):
    before = made(Parameters.plain(3))
    before.save(tmp_path / "d.csv")
    assert (tmp_path / "d.csv").read_text().startswith("x0,x1,x2\n")
    np.testing.assert_array_equal(pf.load_draws(tmp_path / "d.csv").unconstrained, before["x"])


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_one_constrained_vector_is_not_taken_for_coordinates(tmp_path, suffix):
    record = Parameters((Parameter("x", (2,), "positive"),))
    before = made(record)
    before.save(tmp_path / f"d.{suffix}")
    with pytest.raises(ValueError, match="like=sampler"):
        _ = pf.load_draws(tmp_path / f"d.{suffix}").unconstrained
    after = pf.load_draws(tmp_path / f"d.{suffix}", like=record)
    np.testing.assert_allclose(after.unconstrained, before.unconstrained, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must have a name"),
        ("mu,tau\n", "must hold lines of 2 numbers"),
        ("1.0,2.0\n3.0,4.0\n", "it holds numbers"),
        (",mu\n0,1.0\n", "index=False"),
        ("mu,mu\n1,2\n", "two columns of the same name"),
        ("mu,tau\n1.0,2.0\n3.0,4.", "truncated"),
        ("mu,tau\n1.0,2.0\n3.0\n", "d.csv"),
        ("mu,tau\n1.0,two\n", "d.csv"),
        ("mu,tau\n1.0,2.0,3.0\n", "must hold lines of 2 numbers"),
    ],
)
def test_text_that_is_no_table_of_draws(tmp_path, text, words):
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(pf.BadFileError, match=words):
        pf.load_draws(tmp_path / "d.csv")


def test_text_that_is_damaged_is_refused(tmp_path):
    path = tmp_path / "draws.csv"
    made().save(path)
    data = path.read_bytes()
    for cut in (0, 1, 30, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(pf.BadFileError, match="draws"):
            pf.load_draws(path)
    path.write_bytes(np.random.default_rng(0).bytes(2000))
    with pytest.raises(pf.BadFileError, match="draws"):
        pf.load_draws(path)
