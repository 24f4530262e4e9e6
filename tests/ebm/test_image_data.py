"""Folders of images: what can be read, and what is said of what cannot."""

import gzip
import importlib

import numpy as np
import pytest

from pushforward.files import BadFileError
from reproduce.data.images import IDX, images, read_idx


def idx(array):
    array = np.asarray(array, np.uint8)
    sizes = b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return b"\0\0\x08" + bytes([array.ndim]) + sizes + array.tobytes()


def arrays(side=12, n=6, rng=None):
    rng = rng or np.random.default_rng(0)
    pixels = rng.integers(0, 256, (n, side, side), dtype=np.uint8)
    return {
        "train_images": pixels, "train_labels": np.arange(n) % 3,
        "test_images": pixels[:4], "test_labels": np.arange(4) % 3,
    }  # fmt: skip


def write_idx(folder, held, zipped=True):
    folder.mkdir(parents=True, exist_ok=True)
    names = ("train_images", "train_labels", "test_images", "test_labels")
    for name, file in zip(names, IDX, strict=True):
        data = idx(held[name])
        if zipped:
            (folder / f"{file}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / file).write_bytes(data)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("below", ["", "mnist"])
def test_idx_files_are_read_and_padded(tmp_path, zipped, below):
    held = arrays(28)
    write_idx(tmp_path / below, held, zipped)
    data = images(tmp_path)
    assert data.shape == (32, 32)
    assert data.classes == 3
    np.testing.assert_array_equal(data.train[:, 2:-2, 2:-2], held["train_images"])
    assert data.train[:, :2].max() == 0
    assert data.train[:, :, -2:].max() == 0
    np.testing.assert_array_equal(data.test_labels, held["test_labels"])


@pytest.mark.parametrize("side", [8, 12, 16])
def test_an_npz_of_fractions_or_bytes_is_read(tmp_path, side):
    held = arrays(side)
    fractions = {n: a / 255.0 if "images" in n else a for n, a in held.items()}
    np.savez(tmp_path / "mine.npz", **fractions)
    data = images(tmp_path)
    assert data.shape == (-(-side // 8) * 8,) * 2
    margin = (data.shape[0] - side) // 2
    np.testing.assert_array_equal(
        data.train[:, margin : margin + side, margin : margin + side], held["train_images"]
    )


def bad(change):
    held = arrays()
    change(held)
    return held


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.update(test_images=np.zeros((4, 16, 16), np.uint8)), "one size"),
        (lambda a: a.update(train_images=np.zeros((6, 10, 12), np.uint8), test_images=np.zeros((4, 10, 12), np.uint8)), "multiples of 4"),
        (lambda a: a.update(train_images=a["train_images"] * 2.0), "Rescale"),
        (lambda a: a.update(train_images=a["train_images"] / 255.0 - 1.0), "Rescale"),
        (lambda a: a.update(train_images=np.full((6, 12, 12), np.nan)), "Rescale"),
        (lambda a: a.update(train_images=np.zeros((6, 12, 12, 3), np.uint8)), "grey"),
        (lambda a: a.update(train_labels=np.zeros(5, int)), "labels"),
        (lambda a: a.update(test_labels=np.full(4, -1)), "labels"),
        (lambda a: a.update(train_images=np.zeros((0, 12, 12), np.uint8), train_labels=np.zeros(0, int)), "grey"),
    ],
)  # fmt: skip
def test_other_arrays_are_refused_with_the_reason(tmp_path, change, words):
    np.savez(tmp_path / "mine.npz", **bad(change))
    with pytest.raises(BadFileError, match=words):
        images(tmp_path)


def test_a_missing_folder_says_how_to_get_the_data(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"no folder .*train-images-idx3-ubyte.*--data FOLDER"):
        images(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds none"):
        images(tmp_path)
    monkeypatch.setenv("PUSHFORWARD_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(ValueError, match="`PUSHFORWARD_DATA` must name a folder"):
        images()


def test_a_folder_that_lacks_one_file_says_which(tmp_path):
    write_idx(tmp_path, arrays())
    (tmp_path / f"{IDX[3]}.gz").unlink()
    with pytest.raises(ValueError, match="lacks t10k-labels"):
        images(tmp_path)


def test_broken_idx_files_are_named(tmp_path):
    whole = idx(np.zeros((3, 4, 4)))
    for name, data in (
        ("cut", whole[:-1]),
        ("long", whole + b"\0"),
        ("other", b"PK" + whole),
        ("few", b"\0"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(BadFileError, match=name):
            read_idx(tmp_path / name)
    (tmp_path / "torn.gz").write_bytes(gzip.compress(whole)[:-12])
    with pytest.raises(BadFileError, match="torn"):
        read_idx(tmp_path / "torn.gz")


def test_without_a_network_the_download_says_what_to_do(tmp_path, monkeypatch):
    import sklearn.datasets

    def fail(*args, **kwargs):
        raise OSError("no route")

    module = importlib.import_module("reproduce.data.images")
    monkeypatch.delenv("PUSHFORWARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    with pytest.raises(ValueError, match=r"no route.*--data FOLDER"):
        module.images()
