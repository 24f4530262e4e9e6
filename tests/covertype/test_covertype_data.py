import numpy as np
import pytest

from pushforward.container import BadFileError
from reproduce.data import MinMax, covertype, folders, split, stand_in

COUNTS = (20, 30, 5, 4, 4, 4, 3)


@pytest.fixture
def tiny_file(tmp_path):
    """A file with Covertype's arrays and 70 rows."""
    rng = np.random.default_rng(0)
    arrays = {
        "X_quant": rng.integers(0, 4000, (70, 10)).astype(np.int16),
        "X_bin": rng.integers(0, 2, (70, 44)).astype(np.uint8),
        "y": rng.permutation(np.repeat(np.arange(1, 8), COUNTS)).astype(np.uint8),
    }
    np.savez(tmp_path / "covertype.npz", **arrays)
    return tmp_path, arrays


def test_a_given_folder_is_read(tiny_file):
    folder, arrays = tiny_file
    data = covertype(folder, counts=COUNTS)
    assert data.features.shape == (70, 54)
    np.testing.assert_array_equal(data.features[:, :10], arrays["X_quant"])
    np.testing.assert_array_equal(data.labels, np.where(arrays["y"] == 2, -1, 1))


def test_the_environment_names_a_folder_and_the_cache_is_next(tiny_file, tmp_path, monkeypatch):
    folder, _ = tiny_file
    monkeypatch.setenv("PUSHFORWARD_DATA", str(folder))
    assert len(covertype(counts=COUNTS).labels) == 70
    monkeypatch.delenv("PUSHFORWARD_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folders.cache_folder().mkdir(parents=True)
    (folder / "covertype.npz").rename(folders.cache_folder() / "covertype.npz")
    assert len(covertype(counts=COUNTS).labels) == 70


def test_a_missing_folder_says_how_to_get_the_data(tmp_path, monkeypatch):
    for words in (lambda: covertype(tmp_path / "nowhere"), lambda: covertype(tmp_path)):
        with pytest.raises(ValueError, match="pip install scikit-learn"):
            words()
    monkeypatch.setenv("PUSHFORWARD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="PUSHFORWARD_DATA"):
        covertype()


def test_no_network_is_a_message(tmp_path, monkeypatch):
    import sklearn.datasets

    def fail(**_):
        raise OSError("no route")

    monkeypatch.delenv("PUSHFORWARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fail)
    with pytest.raises(ValueError, match="--data FOLDER"):
        covertype()
    assert not (tmp_path / "pushforward" / "data").exists()


def test_a_download_is_kept(tiny_file, tmp_path, monkeypatch):
    import sklearn.datasets

    _, arrays = tiny_file
    calls = []

    def fetch(*, return_X_y, data_home):
        calls.append(data_home)
        return np.hstack([arrays["X_quant"], arrays["X_bin"]]).astype(float), arrays["y"].astype(np.int32)

    monkeypatch.delenv("PUSHFORWARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch)
    first, second = covertype(counts=COUNTS), covertype(counts=COUNTS)
    assert len(calls) == 1
    np.testing.assert_array_equal(first.features, second.features)


@pytest.mark.parametrize("change", ["text", "missing", "shape", "classes"])
def test_other_files_are_refused(tiny_file, change):
    folder, arrays = tiny_file
    path = folder / "covertype.npz"
    if change == "text":
        path.write_text("not an archive")
    else:
        if change == "missing":
            del arrays["X_bin"]
        elif change == "shape":
            arrays["X_bin"] = arrays["X_bin"][:, :40]
        else:
            arrays["y"] = np.roll(arrays["y"], 1) % 7 + 1
        np.savez(path, **arrays)
    with pytest.raises(BadFileError, match="is not Covertype"):
        covertype(folder, counts=COUNTS)


def test_a_file_of_other_data_is_refused(tiny_file):
    with pytest.raises(BadFileError, match="581012"):
        covertype(tiny_file[0])


def test_the_stand_in_has_covertypes_shape():
    data = stand_in(2000, seed=1)
    assert data.features.shape == (2000, 54)
    assert set(np.unique(data.labels)) == {-1, 1}
    wild, soil = data.features[:, 10:14], data.features[:, 14:]
    np.testing.assert_array_equal(wild.sum(1), 1)
    np.testing.assert_array_equal(soil.sum(1), 1)
    assert soil.sum(0).min() < 20 < 150 < soil.sum(0).max()
    np.testing.assert_array_equal(data.features, stand_in(2000, seed=1).features)


def test_a_split_is_decided_by_its_seed_and_scaled_by_its_training_part():
    data = stand_in(1000)
    first, again, other = (split(*data, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.features, again.features)
    assert not np.array_equal(first.features, other.features)
    assert (len(first.labels), len(first.test_labels)) == (800, 200)
    assert first.features.min() == 0
    assert first.features.max() == 1
    # What the training part has not seen may lie outside: proof that it was not looked at.
    outside = [split(*data, seed).test_features.max() > 1 for seed in range(4)]
    assert any(outside)
    # Together they are the data: every label is on one side.
    assert (first.labels > 0).sum() + (first.test_labels > 0).sum() == (data.labels > 0).sum()


def test_a_rare_indicator_stays_in_the_training_part():
    features = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    features[:, 1] = 0
    features[7, 1] = 1
    labels = np.tile([-1, 1], 25)
    for seed in range(12):
        assert split(features, labels, seed).features[:, 1].max() == 1


def test_a_constant_column_has_no_range():
    features = np.array([[0.0, 3.0], [1.0, 3.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match=r"column\(s\) \[1\]"):
        MinMax.fit(features)
    with pytest.raises(ValueError, match="finite"):
        MinMax.fit(np.array([[0.0, np.nan], [1.0, 2.0]]))
    with pytest.raises(ValueError, match="`test_share` leave some"):
        split(features, np.array([1, -1, 1]), 0, test_share=0.1)
