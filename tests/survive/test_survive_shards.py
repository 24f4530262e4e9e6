"""Parts made anywhere join to the very bytes of one machine, and nothing else joins at all."""

import itertools
import json
import shutil

import jax
import numpy as np
import pytest

from pushforward.cli.shards import Part

TOTAL = 150_001
"""More than one large block, the last of them cut; no multiple of anything."""


@pytest.fixture(scope="module")
def whole(invoke, sampler_file, tmp_path_factory):
    """What one machine writes, by kind of latents."""
    folder = tmp_path_factory.mktemp("whole")
    for latents in ("iid", "sobol"):
        words = ["-n", TOTAL, "--seed", 5, "--latents", latents, "--out", folder / f"{latents}.npy", "-q"]
        assert invoke("sample", sampler_file, *words).exit_code == 0
    return {latents: (folder / f"{latents}.npy").read_bytes() for latents in ("iid", "sobol")}


def draw(invoke, sampler_file, folder, part, *, total=TOTAL, seed=5, latents="iid"):
    out = folder / f"part-{part.replace('/', 'of')}.npy"
    words = ["-n", total, "--seed", seed, "--latents", latents, "--shard", part, "--out", out, "-q"]
    result = invoke("sample", sampler_file, *words)
    assert result.exit_code == 0, result.output
    return out


@pytest.mark.parametrize("latents", ["iid", "sobol"])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_any_number_of_parts_joins_to_the_bytes_of_one_machine(
    invoke, sampler_file, whole, tmp_path, count, latents
):
    parts = [
        draw(invoke, sampler_file, tmp_path, f"{k}/{count}", latents=latents) for k in range(1, count + 1)
    ]
    # Given in any order.
    result = invoke("join", *parts[::-1], "--out", tmp_path / "draws.npy")
    assert result.exit_code == 0, result.output
    assert f"{TOTAL:,} draws of 2 coordinates from {count} parts" in result.stderr
    assert (tmp_path / "draws.npy").read_bytes() == whole[latents]
    # Plain arrays, for those who would rather do it themselves.
    np.testing.assert_array_equal(
        np.concatenate([np.load(p) for p in parts]), np.load(tmp_path / "draws.npy")
    )


@pytest.mark.parametrize("start", [0, 1, 1023, 1024, 5000, 131_071, 131_072, 140_000])
def test_draws_from_the_middle_are_those_of_the_whole(sampler, start):
    key = jax.random.key(9)
    expected = np.asarray(sampler.sample(key, 142_000))[start : start + 2000]
    np.testing.assert_array_equal(sampler.sample(key, 2000, start=start), expected)


def test_draws_far_out_do_not_wait_for_those_before(sampler):
    key, far = jax.random.key(9), 10**12 + 3
    near = np.concatenate(list(sampler.stream(key, 5, start=far)))
    np.testing.assert_array_equal(near[2:], sampler.sample(key, 3, start=far + 2))
    with pytest.raises(ValueError, match="start"):
        sampler.sample(key, 5, start=2**41 - 4)
    with pytest.raises(ValueError, match="start"):
        sampler.stream(key, 5, start=-1)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("total", [64, 1000, 10**12 + 7])
def test_parts_leave_no_row_out_and_differ_by_one_at_most(count, total):
    rows = [Part(k, count).rows(total) for k in range(1, count + 1)]
    assert rows[0][0] == 0
    assert all(a + n == b for (a, n), (b, _) in itertools.pairwise(rows))
    assert sum(rows[-1]) == total
    assert max(n for _, n in rows) - min(n for _, n in rows) <= 1


@pytest.fixture(scope="module")
def set_of_three(invoke, sampler_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    for k in (1, 2, 3):
        draw(invoke, sampler_file, folder, f"{k}/3", total=3000)
    draw(invoke, sampler_file, folder, "1/2", total=3000)
    (folder / "part-1of2.npy").rename(folder / "half.npy")
    (folder / "part-1of2.npy.json").rename(folder / "half.npy.json")
    return folder


def change_note(**changes):
    def change(folder):
        path = folder / "part-2of3.npy.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def change_bytes(edit):
    def change(folder):
        path = folder / "part-2of3.npy"
        path.write_bytes(edit(path.read_bytes()))

    return change


def swap(folder):
    a, b = folder / "part-2of3.npy", folder / "part-3of3.npy"
    data = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(data)


FAULTS = {
    "a part is missing": (lambda f: (f / "part-2of3.npy").rename(f / "away"), "rows 1,000 to 1,999 of 3,000"),
    "the last part is missing": (lambda f: (f / "part-3of3.npy").rename(f / "away"), "rows 2,000 to 2,999"),
    "a part overlaps": (lambda f: shutil.copy(f / "half.npy", f / "part-half.npy"), "overlap"),
    "another seed": (change_note(seed=6), "`seed`"),
    "another sampler": (change_note(sampler_sha256="0" * 64), "`sampler_sha256`"),
    "another total": (change_note(total=4000), "`total`"),
    "other latents": (change_note(latents="sobol"), "`latents`"),
    "a bit flipped": (change_bytes(lambda b: b[:-5] + bytes([b[-5] ^ 1]) + b[-4:]), "checksum"),
    "two parts swapped": (swap, "checksum"),
    "a part truncated": (change_bytes(lambda b: b[:-8]), "truncated or corrupted"),
    "a part too long": (change_bytes(lambda b: b + b"\0"), "truncated or corrupted"),
    "a part of another kind": (change_bytes(lambda b: b"PK" + b[2:]), "numpy.save"),
    "an empty part": (change_bytes(lambda b: b""), "numpy.save"),
    "a note too many rows": (change_note(rows=10**9), "end after the last"),
    "a note of text": (change_note(rows="1000"), "whole number"),
    "a note of nothing": (lambda f: (f / "part-2of3.npy.json").write_text("null"), "mark"),
    "a note that is not JSON": (lambda f: (f / "part-2of3.npy.json").write_text("{" * 9000), "not JSON"),
    "a note without end": (lambda f: (f / "part-2of3.npy.json").write_bytes(b" " * 70_000), "at most"),
    "a note from tomorrow": (change_note(version=2), "version"),
    "a note with more": (change_note(code="import os"), "unknown code"),
    "no note": (lambda f: (f / "part-2of3.npy.json").unlink(), "copy both files"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_one_whole_set_is_refused_and_leaves_nothing(invoke, set_of_three, tmp_path, fault):
    folder = tmp_path / "copy"
    shutil.copytree(set_of_three, folder)
    change, message = FAULTS[fault]
    change(folder)
    if (folder / "part-half.npy").exists():
        shutil.copy(folder / "half.npy.json", folder / "part-half.npy.json")
    out = tmp_path / "draws.npy"
    result = invoke("join", *sorted(folder.glob("part-*.npy")), "--out", out)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_a_set_joins_to_any_format(invoke, set_of_three, tmp_path):
    parts = sorted(set_of_three.glob("part-*.npy"))
    for name in ("draws.npy", "draws.npz", "draws.csv"):
        assert invoke("join", *parts, "--out", tmp_path / name, "-q").exit_code == 0
    expected = np.load(tmp_path / "draws.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "draws.npz")["draws"], expected)
    table = np.loadtxt(tmp_path / "draws.csv", delimiter=",", skiprows=1, dtype=np.float32)
    np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shard", "0/3", "--out", "a.npy"], "K between 1 and N"),
        (["--shard", "4/3", "--out", "a.npy"], "K between 1 and N"),
        (["--shard", "two", "--out", "a.npy"], "2/7"),
        (["--shard", "1/11", "--out", "a.npy"], "at most as many parts"),
        (["--shard", "1/2", "--out", "a.csv"], "pushforward join"),
    ],
)
def test_a_bad_part_is_refused(invoke, sampler_file, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    result = invoke("sample", sampler_file, "-n", 10, *words)
    assert result.exit_code == 2
    assert message in result.stderr.replace("│\n│ ", "")
    assert list(tmp_path.iterdir()) == []


def test_a_part_is_not_overwritten_unless_forced(invoke, sampler_file, tmp_path):
    words = ["sample", sampler_file, "-n", 10, "--shard", "1/2", "--out", tmp_path / "a.npy", "-q"]
    assert invoke(*words).exit_code == 0
    (tmp_path / "a.npy").unlink()
    assert "exists" in invoke(*words).stderr
    assert invoke(*words, "--force").exit_code == 0
    result = invoke("join", tmp_path / "a.npy", "--out", tmp_path / "a.npy", "--force")
    assert result.exit_code == 2


def test_parts_are_the_same_points_whatever_the_precision_of_jax(invoke, sampler_file, whole, tmp_path):
    parts = [draw(invoke, sampler_file, tmp_path, "1/3"), draw(invoke, sampler_file, tmp_path, "2/3")]
    with jax.enable_x64(True):
        parts.append(draw(invoke, sampler_file, tmp_path, "3/3"))
        assert invoke("join", *parts, "--out", tmp_path / "draws.npy", "-q").exit_code == 0
    assert (tmp_path / "draws.npy").read_bytes() == whole["iid"]


def test_an_old_part_stays_until_the_new_one_is_whole(invoke, sampler_file, tmp_path, monkeypatch):
    path = draw(invoke, sampler_file, tmp_path, "1/2", total=3000)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    words = [
        "sample",
        sampler_file,
        "-n",
        3000,
        "--seed",
        6,
        "--shard",
        "1/2",
        "--out",
        path,
        "--force",
        "-q",
    ]

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        assert invoke(*words).exit_code == 1
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    assert invoke(*words).exit_code == 0
    assert json.loads(before.pop("part-1of2.npy.json"))["seed"] == 5
    assert json.loads((tmp_path / "part-1of2.npy.json").read_text())["seed"] == 6
