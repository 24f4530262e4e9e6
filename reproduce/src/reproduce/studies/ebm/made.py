"""Made images for tests and for trying the study out: bars of a few directions, with labels."""

import numpy as np

from pushforward.checks import check_count
from reproduce.data.images import Images


def made_images(num_images: int, seed: int = 0, *, side: int = 16, classes: int = 4) -> Images:
    """Return bars of `classes` directions, at random places and of random width; a fifth is for testing."""
    check_count(num_images, "num_images", at_least=40)
    rng = np.random.default_rng(seed)
    labels = np.arange(num_images) % classes
    rows, columns = np.mgrid[:side, :side] - (side - 1) / 2.0
    angle = np.pi * labels / classes + 0.1 * rng.normal(size=num_images)
    offset, width = rng.uniform(-2.0, 2.0, num_images), rng.uniform(0.8, 1.6, num_images)
    across = columns * np.sin(angle)[:, None, None] - rows * np.cos(angle)[:, None, None]
    inside = np.hypot(rows, columns) < 0.4 * side
    bars = np.exp(-((across - offset[:, None, None]) ** 2) / width[:, None, None] ** 2) * inside
    pixels = np.round(255.0 * bars).astype(np.uint8)
    cut = num_images // 5
    return Images(pixels[cut:], labels[cut:], pixels[:cut], labels[:cut])
