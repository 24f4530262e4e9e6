import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from pushforward.base import ExactTarget

# Compiling is most of what these tests cost, so draws are made once and scores are compiled once
# per target, for one shape: 20,000 draws, 1,000 evaluations.
NUM_DRAWS, NUM_POINTS = 20_000, 1_000


@pytest.fixture(scope="session")
def draws():
    """`draws(name)`: points of the target, or of a normal where it cannot be sampled."""

    @functools.cache
    def draw(name):
        target, key = targets.get(name), jax.random.key(2024)
        if not isinstance(target, ExactTarget):
            return np.asarray(jax.random.normal(key, (NUM_DRAWS, target.dim)))
        # Not under one jit: the parts, such as normal draws, are then shared between targets.
        return np.asarray(target.sample(key, NUM_DRAWS))

    return draw


@pytest.fixture(scope="session")
def evaluate():
    """`evaluate(name, x)`: log densities and scores at up to 1,000 points, in single precision."""

    @functools.cache
    def compiled(name):
        return jax.jit(jax.vmap(jax.value_and_grad(targets.get(name).log_density)))

    def run(name, x):
        padded = np.resize(x, (NUM_POINTS, x.shape[1]))
        values, scores = compiled(name)(jnp.asarray(padded, float))
        return np.asarray(values)[: len(x)], np.asarray(scores)[: len(x)]

    return run
