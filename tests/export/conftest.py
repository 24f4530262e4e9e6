import sys
from pathlib import Path

import jaxtyping
import pytest

# The same samplers are put through both ways of drawing without JAX.
sys.path.append(str(Path(__file__).parents[1] / "runtime"))


@pytest.fixture
def unhooked():
    """No annotations enforced, as in a user's session: our own messages are what is under test."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
