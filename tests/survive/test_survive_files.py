"""Every loader meets every kind of bad file: it says so in one way, at once, and takes no memory for it."""

import io
import json
import os
import random
import time
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from honest import honest, readers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import LIARS, mutate

import pushforward as pf
from pushforward import arrays
from pushforward.runs import load_run
from reproduce import records

KINDS = tuple(kind for kind in LIARS if kind != "nc")
"""Files of netCDF are read by a process of its own, which takes a while to start."""

SLACK = 16 * 2**20
"""Bytes that may be taken whatever is read."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    files, found = honest(folder), readers(folder)
    for kind in KINDS:
        path, read = found[kind]
        for data in files[kind]:
            path.write_bytes(data)
            assert read() is not None
    return files, found


@settings(
    max_examples=450, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
def test_a_bad_file_is_one_error_or_a_valid_object(place, kind, seed):
    files, found = place
    path, read = found[kind]
    rng = random.Random(seed)
    strangers = [data for other in KINDS if other != kind for data in files[other]]
    data = mutate(rng, kind, rng.choice(files[kind]), strangers)
    path.write_bytes(data)
    started = time.monotonic()
    tracemalloc.start()
    message = ""
    try:
        with warnings.catch_warnings():
            # That draws are not finite.
            warnings.simplefilter("ignore")
            read()
    except pf.BadFileError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert message == "" or str(path.parent) in message
    assert peak < 2 * len(data) + SLACK
    # A hang, not a time: the honest file takes a millisecond.
    assert time.monotonic() - started < 60
    assert not (path.parent / "executed").exists()


def bomb(claimed, *, honest_size=True):
    """An archive whose one array of zeros unpacks to `claimed` bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        shape = (claimed if honest_size else claimed // 2,)
        np.lib.format.write_array_header_1_0(member, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for _ in range(claimed // 2**20):
            member.write(bytes(2**20))
    return buffer.getvalue()


@pytest.mark.parametrize("honest_size", [True, False])
def test_a_zip_bomb_is_refused_before_it_goes_off(tmp_path, honest_size):
    path = tmp_path / "bomb.npz"
    path.write_bytes(bomb(2**25, honest_size=honest_size))
    assert path.stat().st_size < 2**16
    tracemalloc.start()
    with pytest.raises(pf.BadFileError, match=r"bomb.npz claims"):
        arrays.read_npz(path)
    assert tracemalloc.get_traced_memory()[1] < SLACK
    tracemalloc.stop()


def test_small_arrays_may_be_packed_as_tightly_as_they_can_be(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", grid=np.zeros((1000, 1000), np.uint8), one=np.float64(3))
    held = arrays.read_npz(tmp_path / "a.npz")
    assert held["grid"].shape == (1000, 1000)
    assert held["one"] == 3


ARRAYS = {
    "rows": np.arange(6.0).reshape(3, 2),
    "columns": np.asfortranarray(np.arange(6.0).reshape(3, 2)),
    "none": np.zeros((0, 5), np.float32),
    "scalar": np.float32(2.5),
    "truth": np.array([True, False]),
    "complex": np.array([1 + 2j]),
    "other end": np.arange(3, dtype=">i4"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_numpy_wrote_comes_back(tmp_path, name):
    expected = ARRAYS[name]
    np.save(tmp_path / "a.npy", expected)
    np.savez(tmp_path / "a.npz", x=expected)
    for got in (arrays.read_npy(tmp_path / "a.npy"), arrays.read_npz(tmp_path / "a.npz")["x"]):
        assert (got.dtype, got.shape) == (np.asarray(expected).dtype, np.shape(expected))
        np.testing.assert_array_equal(got, expected)


def test_objects_and_pickles_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(pf.BadFileError, match="must hold numbers"):
        arrays.read_npy(tmp_path / "a.npy")


def test_a_name_in_an_archive_is_never_a_path(tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    with zipfile.ZipFile("a.npz", "w") as archive:
        archive.writestr("../escaped.npy", buffer.getvalue())
    assert list(arrays.read_npz("a.npz")) == ["../escaped"]
    assert os.listdir(tmp_path) == ["inside"]
    assert os.listdir(".") == ["a.npz"]


def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(pf.BadFileError, match="regular file"):
        arrays.read_npy(tmp_path / "pipe.npy")
    with pytest.raises(IsADirectoryError):
        arrays.read_npz(tmp_path)
    with pytest.raises(FileNotFoundError):
        arrays.read_npz(tmp_path / "none.npz")


def test_a_line_without_end_takes_no_memory(tmp_path, place):
    files, _ = place
    path = tmp_path / "r.jsonl"
    path.write_bytes(files["records"][0] + b"[[]," * 2**20)
    tracemalloc.start()
    with pytest.raises(pf.BadFileError, match="line 5: no line may be longer"):
        records.read(path)
    assert tracemalloc.get_traced_memory()[1] < SLACK
    tracemalloc.stop()


def test_a_history_is_as_long_as_its_run_says(tmp_path, place):
    files, found = place
    (found["history"][0]).write_bytes(files["history"][0] * 2)
    with pytest.raises(pf.BadFileError, match="longer than the 2 rows"):
        load_run(found["history"][0].parent)
    about = json.loads(files["run"][0]) | {"rows": 10**12}
    (found["run"][0]).write_text(json.dumps(about))
    with pytest.raises(pf.BadFileError, match="at most"):
        load_run(found["run"][0].parent)
