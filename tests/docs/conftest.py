import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Compile without optimising: these tests are mostly compilation."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
