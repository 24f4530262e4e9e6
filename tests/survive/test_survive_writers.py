"""What is written appears whole or not at all, in its own folder, and leaves nothing behind when it is killed."""

import json
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.atomic import YOUNG, new_folder, write_atomically
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, NormalMixture
from pushforward.networks import mlp
from pushforward.runs import load_run
from pushforward.sampler import Sampler
from reproduce import records
from reproduce.report import write_report
from reproduce.studies.running import Work, begin

SLEEP = """
import sys, time
from pathlib import Path
from pushforward.atomic import YOUNG, new_folder, replacing
with replacing(Path(sys.argv[1]) / "a.npy") as file, new_folder(Path(sys.argv[1]) / "run") as folder:
    file.write(b"half")
    (folder / "sampler.pf").write_bytes(b"half")
    print("here", flush=True)
    time.sleep(600)
"""


def start(code, *words, **options):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE, text=True, **options
    )


def test_what_a_kill_left_goes_with_the_next_write_and_not_before_its_process(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"before")
    process = start(SLEEP, tmp_path)
    assert process.stdout.readline() == "here\n"
    write_atomically(tmp_path / "a.npy", b"meanwhile")
    with new_folder(tmp_path / "run"):
        pass
    assert len(os.listdir(tmp_path)) == 3
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (tmp_path / "a.npy").read_bytes() == b"meanwhile"
    assert len(os.listdir(tmp_path)) == 3
    time.sleep(YOUNG)
    write_atomically(tmp_path / "a.npy", b"after")
    with new_folder(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path) == ["a.npy"]


def test_links_are_neither_followed_nor_removed(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    monkeypatch.setattr("secrets.token_hex", lambda count: "0" * 2 * count)
    (tmp_path / ".a.npy.00000000.part").symlink_to(other)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "a.npy", b"draws")
    (tmp_path / "r.jsonl.part").symlink_to(other)
    records.write(tmp_path / "r.jsonl", records.Header("s", "cpu", 0, "c", {}, 1))
    (tmp_path / "a.npy").symlink_to(other)
    (tmp_path / ".a.npy.00000000.part").unlink()
    write_atomically(tmp_path / "a.npy", b"draws")
    assert other.read_bytes() == b"precious"
    assert (tmp_path / "a.npy").read_bytes() == b"draws"


FULL = """
import resource, sys
import jax, numpy as np, pushforward as pf
draws = pf.Draws.of(jax.device_put(np.random.default_rng(0).normal(size=(100_000, 2)).astype(np.float32)))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    draws.save(sys.argv[1])
except OSError as error:
    print(error.filename, error)
"""


@pytest.mark.parametrize("suffix", ["nc", "npz", "npy", "csv", "parquet"])
def test_a_file_that_the_disk_cannot_hold_is_an_error_by_the_users_name(tmp_path, suffix):
    path = tmp_path / f"draws.{suffix}"
    path.write_bytes(b"before")
    done = start(FULL, path, stderr=subprocess.PIPE)
    out, err = done.communicate()
    assert done.returncode == 0, err
    assert out.startswith(str(path))
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == [path.name]


def test_a_path_that_cannot_be_is_named_as_the_user_gave_it(sampler, tmp_path):
    for save in (sampler.save, pf.Draws.of(jnp.zeros((2, 1))).save):
        with pytest.raises(FileNotFoundError, match=r"there is no folder no/such/dir for no/such/dir/b"):
            save("no/such/dir/b.npz")
    longest = tmp_path / ("a" * 251 + ".npz")
    pf.Draws.of(jnp.zeros((2, 1))).save(longest)
    assert os.listdir(tmp_path) == [longest.name]


HEADER = records.Header("study", "cpu", 0, "command", {"jax": "0"}, 2)
RECORD = records.Record("study", "cpu", "kl", "donut", "ksd", 0.5)


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "a/b", "..", "", "a\0b", "x" * 300, "C:x"])
def test_a_report_stays_in_its_folder(tmp_path, name):
    results, out = tmp_path / "results", tmp_path / "docs"
    records.write(results / "r.jsonl", HEADER, [RECORD])
    lines = (results / "r.jsonl").read_text().splitlines()
    (results / "r.jsonl").write_text(
        "\n".join([json.dumps(json.loads(lines[0]) | {"study": name}), lines[1]]) + "\n"
    )
    with pytest.raises(pf.BadFileError, match=r"r\.jsonl, line 1.*study"):
        write_report(results, out)
    assert os.listdir(tmp_path) == ["results"]


def test_a_torn_line_goes_and_a_full_disk_takes_nothing_with_it(tmp_path, monkeypatch):
    path = tmp_path / "study.jsonl"
    records.write(path, HEADER, [RECORD])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"study": "st')

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            begin(path, HEADER, Work(lambda row: [], lambda found: ""), fresh=False)
    assert path.read_bytes() == whole + b'{"study": "st'
    records.mend(path)
    assert path.read_bytes() == whole


# What is read


def test_a_header_of_a_megabyte_takes_no_memory(tmp_path):
    fields = "".join(f"('a{i}', '<f4'), " for i in range(40_000))
    text = f"{{'descr': [{fields}], 'fortran_order': False, 'shape': (1,), }}\n".encode()
    data = b"\x93NUMPY\x02\0" + len(text).to_bytes(4, "little") + text + bytes(160_000)
    (tmp_path / "a.npy").write_bytes(data)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(pf.BadFileError, match="claims a header of"):
        pf.load_draws(tmp_path / "a.npy")
    assert time.process_time() - started < 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024


def peak(read):
    """Return the bytes that a refusal takes."""
    tracemalloc.start()
    with pytest.raises(pf.BadFileError):
        read()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_what_swells_when_it_is_parsed_is_refused(tmp_path):
    text = b'{"__metadata__": {"format": "pushforward", "version": "1", "sha256": "", "body": "%s"}}' % (
        b"[]," * 10**6
    )
    (tmp_path / "a.pf").write_bytes(len(text).to_bytes(8, "little") + text)
    (tmp_path / "b.pf").write_bytes(
        (4 * 10**6).to_bytes(8, "little") + b"[" + b"[]," * (4 * 10**6 // 3) + b"[]]"
    )
    (tmp_path / "run").mkdir()
    for name in ("run.json", "history.jsonl", "sampler.pf"):
        (tmp_path / "run" / name).write_bytes(b"[" + b"[]," * 300_000 + b"[]]")
    for path in (tmp_path / "a.pf", tmp_path / "b.pf"):
        assert peak(lambda path=path: pf.load(path)) < 2 * path.stat().st_size + 2**24
    assert peak(lambda: load_run(tmp_path / "run")) < 2 * 10**6 + 2**24


def test_an_archive_of_a_million_names_is_refused_before_they_are_read(tmp_path):
    entry = (
        struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
        + b"a"
    )
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, len(entry) * 200_000, 0, 0)
    (tmp_path / "a.npz").write_bytes(entry * 200_000 + end)
    assert peak(lambda: pf.load_draws(tmp_path / "a.npz")) < 2**24


@pytest.mark.parametrize(
    "fields",
    [
        "('a', '|O')", "('a', '<f4'), ('a', '<f4')", "('a', '<f4', (-1,))", "('a', [('b', '<f4')])", "('a', '<f4'", "",
        "('a', '<f4', (999999999999,))", "('a', '<f4')('b', '<f4')", "('' * 9, '<f4')", "('a', '<f4', (0,))", "('" * 9999,
        "(('title', 'a'), '<f4')", "('a', '<f4', (1, 1, 1, 1, 1))",
        r"('\N{x}', '<f4')", r"('a', '<f4'), ('\x1', '<f4')",
    ],
)  # fmt: skip
def test_fields_that_are_no_numbers_are_refused(tmp_path, fields):
    text = f"{{'descr': [{fields}], 'fortran_order': False, 'shape': (3,), }}\n".encode()
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x02\0" + len(text).to_bytes(4, "little") + text + bytes(11))
    with pytest.raises(pf.BadFileError, match=r"a\.npy"):
        pf.load_draws(tmp_path / "a.npy")


def test_named_draws_of_any_letters_and_number_come_back(tmp_path):
    dtype = np.dtype(
        [("čau", "<f4"), ("it's", ">f8", (2, 3)), ("x\\'\"", "<i2"), *((f"n{i}", "<f4") for i in range(5000))]
    )
    rows = np.zeros(3, dtype)
    rows["it's"], rows["čau"] = np.arange(18).reshape(3, 2, 3), [1, 2, 3]
    with pytest.warns(UserWarning, match="format"):
        np.save(tmp_path / "a.npy", rows)
    draws = pf.load_draws(tmp_path / "a.npy")
    assert draws.names == dtype.names
    np.testing.assert_array_equal(draws["it's"], rows["it's"])
    draws.save(tmp_path / "b.npy")
    assert pf.load_draws(tmp_path / "b.npy").names == dtype.names
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy", max_header_size=10**6)["čau"], rows["čau"])


def test_a_table_of_a_hundred_million_equal_rows_is_refused_before_it_is_read(tmp_path):
    import pyarrow.parquet

    column = pyarrow.array(np.zeros(10**6, np.float32))
    with pyarrow.parquet.ParquetWriter(
        tmp_path / "a.parquet", pyarrow.schema([("x", pyarrow.float32())])
    ) as writer:
        for _ in range(20):
            writer.write_table(pyarrow.table([column], names=["x"]))
    assert (tmp_path / "a.parquet").stat().st_size < 10**5
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(pf.BadFileError, match="claims to unpack"):
        pf.load_draws(tmp_path / "a.parquet")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024


def test_a_grid_of_zeros_in_netcdf_is_refused_before_it_is_read(tmp_path):
    import xarray

    for name, axis in (("coordinate", True), ("variable", False)):
        data = xarray.Dataset({"a": (("chain", "draw"), np.zeros((1, 10**7 if not axis else 2), np.float32))})
        data = data.assign_coords(chain=np.zeros(1), draw=np.zeros(data.sizes["draw"]))
        path = tmp_path / f"{name}.nc"
        coding = {each: {"zlib": True} for each in ("a", "draw")}
        data.to_netcdf(path, group="posterior", engine="h5netcdf", encoding=coding)
        if axis:
            assert len(pf.load_draws(path)) == 2
            continue
        assert path.stat().st_size < 10**6
        with pytest.raises(pf.BadFileError, match="claims to unpack"):
            pf.load_draws(path)


def test_netcdf_keeps_what_is_missing_and_refuses_what_is_packed(tmp_path):
    import xarray

    data = xarray.Dataset({"a": (("chain", "draw"), np.array([[1, 2, -9]]))})
    data.to_netcdf(
        tmp_path / "m.nc", group="posterior", engine="h5netcdf", encoding={"a": {"_FillValue": -9}}
    )
    with pytest.warns(UserWarning, match="1 of its 3 draws"):
        np.testing.assert_array_equal(pf.load_draws(tmp_path / "m.nc")["a"], [1.0, 2.0, np.nan])
    packed = {"a": {"scale_factor": 0.5, "dtype": "i2", "_FillValue": -1}}
    data = data.astype(float)
    data.to_netcdf(tmp_path / "p.nc", group="posterior", engine="h5netcdf", encoding=packed)
    with pytest.raises(pf.BadFileError, match="fewer digits"):
        pf.load_draws(tmp_path / "p.nc")


@pytest.mark.parametrize("suffix", ["npz", "npy", "csv", "parquet", "nc"])
def test_draws_that_are_not_finite_are_told(tmp_path, suffix):
    x = np.zeros((50, 2), np.float32)
    x[3, 0], x[7, 1], x[7, 0] = np.nan, np.inf, -np.inf
    pf.Draws.of(jax.device_put(x)).save(tmp_path / f"d.{suffix}")
    with pytest.warns(UserWarning, match=rf"d\.{suffix}: 2 of its 50 draws are not finite, in x"):
        draws = pf.load_draws(tmp_path / f"d.{suffix}")
    np.testing.assert_array_equal(draws["x"], x)


def test_integers_that_jax_would_cut_short_are_refused(tmp_path):
    np.savez(tmp_path / "d.npz", a=np.array([1, 2**40]))
    with pytest.raises(pf.BadFileError, match="integers of 64 bits"):
        pf.load_draws(tmp_path / "d.npz")
    np.savez(tmp_path / "d.npz", a=np.array([1, 2]), b=np.array([1.0, 2.0], ">f8"))
    np.testing.assert_array_equal(pf.load_draws(tmp_path / "d.npz")["b"], [1.0, 2.0])


def normals(weights, choleskys):
    return NormalMixture(jnp.asarray(weights), jnp.zeros((len(weights), 2)), choleskys[None])


BAD_LAWS = {
    "negative": normals([1.5, -0.5], jnp.eye(2)),
    "all zero": normals([0.0, 0.0], jnp.eye(2)),
    "factors below zero": normals([1.0], -jnp.eye(2)),
    "a row of zeros": IndependentMixtures(
        jnp.array([[1.0, 1.0], [0.0, 0.0]]), jnp.zeros((2, 2)), jnp.ones((2, 2))
    ),
    "spreads below zero": IndependentMixtures(jnp.ones((2, 2)), jnp.zeros((2, 2)), -jnp.ones((2, 2))),
}


@pytest.mark.parametrize("name", BAD_LAWS)
@pytest.mark.parametrize("load", [pf.load, pf.runtime.load])
def test_a_mixture_whose_weights_are_none_is_refused(tmp_path, name, load):
    Sampler(BAD_LAWS[name], mlp(jax.random.key(0), 2, 2, width=2, depth=1), Frame.identity(2)).save(
        tmp_path / "s.pf"
    )
    with pytest.raises(pf.BadFileError, match="must not be negative"):
        load(tmp_path / "s.pf")
