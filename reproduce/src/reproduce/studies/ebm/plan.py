"""What a preset would do: its stages, and the exact sizes of its networks; and made images to try it on."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from pushforward.checks import check_count
from reproduce.data.images import Images
from reproduce.studies.ebm.classifier import build_classifier
from reproduce.studies.ebm.energy import build_energy
from reproduce.studies.ebm.sampler import build
from reproduce.studies.ebm.settings import Settings

SHAPE, CLASSES = (32, 32), 10


def count(net: Any) -> int:
    """Return the number of parameters of a network, or of the shapes of one."""
    return sum(leaf.size for leaf in jax.tree.leaves(net) if hasattr(leaf, "size"))


def plan(settings: Settings, shape: tuple[int, int] = SHAPE, classes: int = CLASSES) -> list[str]:
    """Return lines for a reader: stages, steps, and parameters of every network."""
    s, key = settings, jax.random.key(0)
    energy = eqx.filter_eval_shape(build_energy, key, s, shape)
    state = eqx.filter_eval_shape(build, key, s, shape)
    classifier = eqx.filter_eval_shape(build_classifier, key, s, shape, classes)
    images = s.row_sets * s.row_images
    steps = s.steps(s.sampler_steps if s.recipe == "warm" else s.plain_steps)
    return [
        f"stages: {', '.join(s.stages)}",
        f"classifier: {count(classifier):,} parameters, {s.steps(s.classifier_steps):,} steps",
        f"energy: {count(energy):,} parameters, {s.steps(s.energy_steps):,} steps",
        f"langevin: {', '.join(map(str, s.evaluations))} evaluations, {images:,} images each",
        f"sampler: {count(state.generator):,} parameters, {steps:,} steps",
        f"score net: {count(state.score):,} parameters, {s.score_steps} steps for each of the sampler",
    ]


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
