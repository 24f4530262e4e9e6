"""Compiled programs: kept between sessions, and let go in a session that holds too many of them."""

import gc
import os
from pathlib import Path

import jax

VARIABLE = "PUSHFORWARD_CACHE"

MAPS = Path("/proc/self/maps")
MANY_MAPS = 25_000
"""Each compiled program holds a few memory maps, and Linux allows a process 65,530 of them; beyond, compiling
fails and the process with it."""


def use_compilation_cache() -> None:
    """Point JAX at a cache folder; JAX makes the folder when it first has something to keep.

    `PUSHFORWARD_CACHE` names another folder, or `off`. A cache that is already set is left alone.
    """
    folder = os.environ.get(VARIABLE, "")
    current = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    if folder == "off" or current is not None:
        return
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", folder or str(Path(base) / "pushforward" / "xla"))
    # JAX keeps only what took a second to compile; a sampler's first draw is made of shorter ones.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def let_programs_go(maps: Path = MAPS, most: int = MANY_MAPS) -> None:
    """Forget compiled programs if the process is on its way to the limit; what is needed compiles again."""
    try:
        many = maps.read_bytes().count(b"\n") > most
    except OSError:
        return
    if many:
        jax.clear_caches()
        gc.collect()
