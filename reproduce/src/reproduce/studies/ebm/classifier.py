"""The stage that trains the classifier, whose features FID and KID are measured in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from reproduce.data.images import Images
from reproduce.images import small_classifier, wide_resnet
from reproduce.studies.ebm.keeping import train
from reproduce.studies.ebm.noise import begun, descended
from reproduce.studies.ebm.settings import Settings

SHIFT = 2  # pixels by which images are moved about while training

SMOOTHING = 0.1
AVERAGE = 0.995
PIECE = 250


class ClassifierState(NamedTuple):
    """What training the classifier carries from step to step."""

    net: Any
    average: Any
    optimiser: Any
    step: Array


def build_classifier(key: Key[Array, ""], settings: Settings, shape: tuple[int, int], classes: int) -> Any:
    """Return an untrained classifier of the settings' kind."""
    if settings.classifier == "wide":
        return wide_resnet(key, classes=classes)
    return small_classifier(key, shape, classes=classes, widths=settings.classifier_widths)


def classifier_stage(settings: Settings, data: Images, folder: Path, observe: Callable[[str], None]) -> Any:
    """Train the classifier, or what is left of it, and return its moving average."""
    key_init, key_run = jax.random.split(jax.random.fold_in(jax.random.key(settings.seed), 0))
    net = build_classifier(key_init, settings, data.shape, data.classes)
    steps = settings.classifier_steps
    rate = optax.cosine_onecycle_schedule(max(steps, 2), settings.classifier_rate)
    rule = optax.adamw(rate, weight_decay=1e-2)
    state = begun(ClassifierState, net, net, rule)
    pixels, labels = jax.device_put(data.train), jax.device_put(data.train_labels.astype(np.int32))

    @eqx.filter_jit
    def step(key, state, pixels, labels):
        key_batch, key_shift = jax.random.split(key)
        chosen = jax.random.randint(key_batch, (settings.classifier_batch,), 0, pixels.shape[0])
        moves = jax.random.randint(key_shift, (settings.classifier_batch, 2), -SHIFT, SHIFT + 1)
        x = jax.vmap(lambda image, by: jnp.roll(image, by, axis=(0, 1)))(pixels[chosen], moves)
        x = x.astype(jnp.float32)[..., None] / 255.0
        wanted = optax.smooth_labels(jax.nn.one_hot(labels[chosen], data.classes), SMOOTHING)

        def loss(net):
            return jnp.mean(optax.softmax_cross_entropy(jax.vmap(net)(x), wanted))

        state, value = descended(state, loss, rule, AVERAGE)
        return state, {"loss": value}

    last = train(
        "classifier", key_run, lambda key, state: step(key, state, pixels, labels), state,
        num_steps=settings.steps(steps), folder=folder, every=settings.checkpoint_seconds, observe=observe,
    )  # fmt: skip
    return last.average


@eqx.filter_jit
def _look(net: Any, x: Float[Array, "n height width 1"]) -> tuple[Array, Array]:
    features = jax.vmap(net.features)(x)
    return features, jax.vmap(net.classes_map)(features)


def look(net: Any, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return features and most likely classes of images, `(n, height, width)`, bytes or from 0 to 1."""
    features, classes = [], []
    for start in range(0, len(images), PIECE):
        part = images[start : start + PIECE]
        x = part.astype(np.float32) / (255.0 if part.dtype == np.uint8 else 1.0)
        # Always the same shape, hence one program.
        filled = np.zeros((PIECE, *x.shape[1:], 1), np.float32)
        filled[: len(x), ..., 0] = x
        found, logits = _look(net, jax.device_put(filled))
        features.append(np.asarray(found)[: len(x)])
        classes.append(np.asarray(logits)[: len(x)].argmax(axis=1))
    return np.concatenate(features), np.concatenate(classes)
