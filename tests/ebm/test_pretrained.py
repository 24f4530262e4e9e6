"""The weights that come with the package, and `pushforward sample mnist`."""

import jax
import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from pushforward.cli import app
from pushforward.files import BadFileError
from reproduce import pretrained


@pytest.fixture(scope="module")
def model():
    return pretrained.mnist()


def test_the_weights_are_small_and_complete(model):
    assert pretrained.WEIGHTS.stat().st_size <= 12e6
    assert set(model.samplers) == set(pretrained.NAMES.values())
    assert model.target.dim == 1024
    assert "pushforward study ebm" in model.about["made_by"]


def test_draws_look_like_strokes_on_black_and_differ(model):
    images = pretrained.draw(jax.random.key(0), model.samplers["kl"], 300)
    assert images.shape == (300, 32, 32)
    # MNIST: a tenth of all pixels are ink, the border is black, and no two digits are the same.
    assert 0.03 < images.mean() / 255 < 0.25
    assert images[:, :2].mean() < 5
    assert len({image.tobytes() for image in images}) == 300
    np.testing.assert_array_equal(images[:7], pretrained.draw(jax.random.key(0), model.samplers["kl"], 7))


def test_a_grid_is_a_picture(tmp_path):
    runner = CliRunner()
    out = tmp_path / "grid.png"
    done = runner.invoke(app, ["sample", "mnist", "-n", "64", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert imread(out).shape[:2] == (256, 256)
    again = runner.invoke(app, ["sample", "mnist", "-n", "64", "--out", str(out)])
    assert again.exit_code == 2
    assert "--force" in again.output
    for name in ("digits.npy", "digits.npz"):
        assert (
            runner.invoke(app, ["sample", "mnist", "-n", "3", "--out", str(tmp_path / name)]).exit_code == 0
        )
    np.testing.assert_array_equal(
        np.load(tmp_path / "digits.npy"), np.load(tmp_path / "digits.npz")["images"]
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "grid.csv"], ".png"),
        (["--out", "nowhere/grid.png"], "no folder"),
        (["--out", "grid.png", "--latents", "sobol"], "alone"),
        (["--out", "grid.png", "-n", "1e6"], "at most 10,000"),
    ],
)
def test_requests_that_make_no_sense(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count = [] if "-n" in arguments else ["-n", "4"]
    result = CliRunner().invoke(app, ["sample", "mnist", *count, *arguments])
    assert result.exit_code == 2
    assert words in result.output.replace("\n", " ")


def test_a_damaged_file_is_refused(tmp_path):
    data = bytearray(pretrained.WEIGHTS.read_bytes())
    data[-1] ^= 1
    (tmp_path / "mnist.safetensors").write_bytes(data)
    with pytest.raises(BadFileError, match="corrupted"):
        pretrained.mnist(tmp_path / "mnist.safetensors")


def test_other_images_side_by_side():
    images = np.arange(5, dtype=np.uint8)[:, None, None] + np.zeros((5, 2, 3), np.uint8)
    page = pretrained.grid(images)
    assert page.shape == (4, 9)
    np.testing.assert_array_equal(page[::2, ::3], [[0, 1, 2], [3, 4, 0]])
    assert pretrained.grid(images, columns=5).shape == (2, 15)
