import jax
import jaxtyping
import pytest


@pytest.fixture
def double():
    """Double precision, so that an exact expectation is exact to more digits than are asked for."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def unhooked():
    """No annotations enforced, as in a user's session: our own messages are what is under test."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
