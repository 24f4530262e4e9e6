"""What all tests share."""

import pytest

from pushforward._cache import let_programs_go


@pytest.fixture(autouse=True, scope="module")
def _room_for_programs():
    """A worker runs a thousand tests, each with programs of its own."""
    yield
    let_programs_go()
