"""What a preset would do: its stages, and the exact sizes of its networks, without building any."""

from typing import Any

import equinox as eqx
import jax

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
