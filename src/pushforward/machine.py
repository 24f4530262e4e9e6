"""What a record says of where it was made: the versions that matter, and the cores of this process."""

import hashlib
import os
from functools import cache
from importlib import metadata
from pathlib import Path

LIBRARIES = (
    *("pushforward", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy"),
    *("blackjax", "flowjax", "numpyro"),
)


def versions() -> dict[str, str]:
    """Return the installed versions of `LIBRARIES`."""
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def cores() -> int:
    """Return how many cores this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def check_addresses(least: int = 2**31) -> None:
    """Refuse a limit of the address space at which JAX would end the process by a crash."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
    except ImportError:
        return
    allowed = getrlimit(RLIMIT_AS)[0]
    if allowed != RLIM_INFINITY and allowed < least:
        raise ValueError(
            f"this process may have {allowed / 1e9:.2g} GB of addresses; with these, JAX would crash. "
            f"Allow {least / 1e9:.2g} GB: `ulimit -v {least // 1024}`."
        )


@cache
def source() -> str:
    """Return a few digits that differ where any file of the library differs, committed or not.

    Numbers follow from code. So checkpoints and records say which code they are of.
    """
    folder, found = Path(__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]
