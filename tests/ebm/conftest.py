"""Little is computed here and much compiled."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def _quick():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
