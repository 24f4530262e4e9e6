"""What is said of images, with a classifier that sees brightness alone."""

import numpy as np
import pytest

from reproduce.data.images import Images
from reproduce.studies.ebm.judge import Judge
from reproduce.studies.ebm.settings import PRESETS

RNG = np.random.default_rng(0)


def see(images):
    """Two features, one of which says which of two classes an image is of."""
    bright = images.reshape(len(images), -1).mean(axis=1) / 255.0
    noise = np.random.default_rng(len(images)).normal(size=len(images))
    return np.stack([10.0 * bright, noise], axis=1), (bright > 0.5).astype(int)


def images_of(labels):
    return np.clip(255 * labels[:, None, None] + RNG.normal(0, 5, (len(labels), 8, 8)), 0, 255).astype(
        np.uint8
    )


@pytest.fixture
def judge():
    train, test = RNG.integers(0, 2, 4000), RNG.integers(0, 2, 1000)
    return Judge(PRESETS["smoke"], Images(images_of(train), train, images_of(test), test), see)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_fid_of_shares_is_that_of_training_images_with_those_shares(judge, share):
    labels = (np.arange(1000) < 1000 * share).astype(int)
    found = {r.metric: r for r in judge.images("some", images_of(labels))}["fid_of_shares"]
    # Two classes ten apart: a share of `p` has the mean `10 p` and the spread `10 sqrt(p (1 - p))`.
    wanted = (10 * (0.5 - share)) ** 2 + (5 - 10 * np.sqrt(share * (1 - share))) ** 2
    assert found.value == pytest.approx(wanted, rel=0.15, abs=0.1)
    assert found.floor < 0.1


def test_shares_of_classes_that_no_training_image_has_are_no_figure(judge):
    assert np.isnan(judge._of_shares(np.array([0.0, 0.0, 1.0]), 100))
