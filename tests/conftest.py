"""What all tests share."""

import jax
import pytest

from pushforward._cache import let_programs_go

QUICK = ("cli", "docs", "draws", "export", "models", "noise", "runtime", "survive")
"""Folders whose tests are mostly compilation: unoptimised programs cost half as much."""


@pytest.fixture(autouse=True, scope="module")
def _compilation(request):
    """Compile quickly where little is computed; and make room, since a worker runs a thousand tests."""
    if quick := request.path.parent.name in QUICK:
        jax.config.update("jax_disable_most_optimizations", True)
    yield
    if quick:
        jax.config.update("jax_disable_most_optimizations", False)
    let_programs_go()
