import resource
import shutil
import zipfile

import jax
import numpy as np
import pytest

from pushforward import load_draws
from pushforward.cli import writers
from pushforward.runs import load_run


@pytest.fixture(scope="module")
def sampler(run_folder):
    return load_run(run_folder).sampler()


@pytest.mark.parametrize("latents", ["iid", "sobol"])
def test_an_npy_file_holds_what_the_sampler_draws(invoke, run_folder, sampler, tmp_path, latents):
    # Enough for several blocks, the last of them cut.
    out, n = tmp_path / "draws.npy", 150_001
    result = invoke("sample", run_folder, "-n", n, "--out", out, "--seed", 7, "--latents", latents)
    assert result.exit_code == 0, result.output
    assert "150,001 draws of 2 coordinates" in result.stderr
    assert result.stdout == ""
    draws = np.load(out)
    np.testing.assert_array_equal(draws, sampler.sample(jax.random.key(7), n, latents=latents))
    assert [path.name for path in tmp_path.iterdir()] == ["draws.npy"]


def test_npz_and_csv_hold_the_same(invoke, run_folder, sampler, tmp_path):
    expected = sampler.sample(jax.random.key(1), 1000)
    for name in ("draws.npz", "draws.csv"):
        result = invoke("sample", run_folder / "sampler.pf", "-n", "1e3", "--out", tmp_path / name, "-q")
        assert (result.exit_code, result.output) == (0, "")
    with np.load(tmp_path / "draws.npz") as archive:
        np.testing.assert_array_equal(archive["draws"], expected)
    assert zipfile.ZipFile(tmp_path / "draws.npz").testzip() is None
    assert (tmp_path / "draws.csv").read_text().startswith("x0,x1\n")
    np.testing.assert_array_equal(load_draws(tmp_path / "draws.csv").unconstrained, expected)
    sampler.draws(jax.random.key(1), 1000).save(tmp_path / "python.csv")
    assert (tmp_path / "draws.csv").read_bytes() == (tmp_path / "python.csv").read_bytes()


def test_a_file_is_overwritten_only_by_force(invoke, run_folder, tmp_path):
    out = tmp_path / "draws.npy"
    out.write_text("precious")
    result = invoke("sample", run_folder, "-n", 10, "--out", out)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert out.read_text() == "precious"
    assert invoke("sample", run_folder, "-n", 10, "--out", out, "--force").exit_code == 0
    assert np.load(out).shape == (10, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "0", "--out", "a.npy"], "at least"),
        (["-n", "-5", "--out", "a.npy"], "at least"),
        (["-n", "2.5", "--out", "a.npy"], "whole number"),
        (["-n", "many", "--out", "a.npy"], "whole number"),
        (["-n", "1e999", "--out", "a.npy"], "whole number"),
        (["-n", "5", "--out", "a.txt"], ".npy, .npz, .csv"),
        (["-n", "5", "--out", "no/such/a.npy"], "there is no folder"),
        (["-n", "5", "--out", "a.npy", "--latents", "sobl"], "Did you mean 'sobol'?"),
        (["-n", "1e16", "--out", "a.npy"], "are free"),
        (["--out", "a.npy"], "-n"),
    ],
)
def test_a_bad_argument_is_one_message_and_code_2(invoke, run_folder, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    result = invoke("sample", run_folder, *words)
    assert result.exit_code == 2
    assert message in result.stderr.replace("│\n│ ", "")
    assert list(tmp_path.iterdir()) == []


def test_broken_and_missing_samplers_are_named(invoke, run_folder, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    data = (copy / "sampler.pf").read_bytes()
    (copy / "sampler.pf").write_bytes(data[:-7])
    for source, message in ((copy, "sampler.pf"), (tmp_path / "none", "there is no")):
        result = invoke("sample", source, "-n", 5, "--out", tmp_path / "a.npy")
        assert result.exit_code == 2
        assert message in result.stderr
        assert "Traceback" not in result.output
    assert not (tmp_path / "a.npy").exists()


def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path):
    def begin():
        with writers.writer(tmp_path / "draws.npz", (10, 2), np.dtype("float32")) as write:
            write(np.zeros((5, 2), np.float32))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def little_room():
    """No file may grow beyond 64 kB: to a program, the limit of a user is like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("little_room")
def test_a_full_disk_is_a_failure_and_leaves_nothing(invoke, run_folder, tmp_path):
    result = invoke("sample", run_folder, "-n", "1e5", "--out", tmp_path / "a.npy")
    assert result.exit_code == 1
    assert "a.npy: File too large." in result.stderr
    assert list(tmp_path.iterdir()) == []
