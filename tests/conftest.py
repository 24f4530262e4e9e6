"""What all tests share."""

import gc
import os

# LLVM spends more on the last tenth of speed than tests ever get back, and so do the emitters of fusions.
# Read when JAX first compiles.
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=1",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_use_fusion_emitters=false",
    ]
)

import jax
import pytest

from pushforward.programs import let_programs_go

# JAX makes many objects that stay: by default they are looked through far too often.
gc.set_threshold(50_000, 20, 50)

QUICK = ("cli", "docs", "draws", "ebm", "export", "models", "noise", "payback", "runtime", "survive", "trust")
"""Folders whose tests are mostly compilation: unoptimised programs cost half as much. Elsewhere a module says so
by `pytest.mark.quick_compilation`."""

QUICKLY = pytest.StashKey[bool]()
"""Whether programs are compiled quickly now."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Compile quickly where little is computed; before any fixture, so that all of a folder is alike.

    JAX does not ask which way a program in its memory was compiled, and the two ways differ in the last bit. So
    what was compiled the other way is forgotten, or a test of equal bits would hold them against each other.
    """
    quick = item.path.parent.name in QUICK or item.get_closest_marker("quick_compilation") is not None
    if quick != item.config.stash.get(QUICKLY, False):
        item.config.stash[QUICKLY] = quick
        jax.clear_caches()
        jax.config.update("jax_disable_most_optimizations", quick)


@pytest.fixture(autouse=True, scope="module")
def _room():
    """Make room after every module, since a worker runs a thousand tests."""
    yield
    let_programs_go()
