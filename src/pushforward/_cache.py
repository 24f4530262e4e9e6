"""Compiled programs are kept between sessions, unless the user has a cache of their own or wants none."""

import os
from pathlib import Path

import jax

VARIABLE = "PUSHFORWARD_CACHE"


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
