import jaxtyping
import pytest


@pytest.fixture
def unhooked():
    """No annotations enforced, as in a user's session: our own messages are what is under test."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
