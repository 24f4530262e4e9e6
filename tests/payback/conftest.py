import jax
import jaxtyping
import pytest


@pytest.fixture
def unhooked():
    """No annotations enforced, as in a user's session: our own messages are what is under test."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Compile without optimising: these tests are mostly compilation."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
