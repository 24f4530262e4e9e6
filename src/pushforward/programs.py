"""Compiled programs: where they are kept, when they are let go, and what it means if one fails."""

import gc
import os
import re
from pathlib import Path

import jax

VARIABLE = "PUSHFORWARD_CACHE"

MAPS = Path("/proc/self/maps")
MANY_MAPS = 25_000
"""Each compiled program holds a few memory maps, and Linux allows a process 65,530 of them; beyond, compiling
fails and the process with it."""

_STATUS = re.compile(r"(INTERNAL|UNKNOWN|RESOURCE_EXHAUSTED|UNAVAILABLE|ABORTED|CANCELLED|DATA_LOSS): ")


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


def is_exhausted(error: BaseException) -> bool:
    """Whether an error says that memory ran out, rather than that something is wrong."""
    return isinstance(error, MemoryError) or (came_from_running(error) and "RESOURCE_EXHAUSTED" in str(error))


def came_from_running(error: BaseException) -> bool:
    """Whether an error was raised by a program that ran, and not by a mistake in making it.

    JAX raises some failures as a `ValueError` that begins with a status of its runtime.
    """
    if isinstance(error, RuntimeError | MemoryError):
        return True
    return isinstance(error, ValueError) and _STATUS.match(str(error)) is not None


def in_one_line(error: BaseException) -> str:
    """Return the words of an error; of a traceback that came through JAX, those of what was raised first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception|Interrupt)\b", line)]
    return (raised or lines or [type(error).__name__])[-1 if raised else 0][:500]
