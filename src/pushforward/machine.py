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


LEAST_ADDRESSES = 2**31
"""Bytes of addresses that JAX reserves for its programs and threads, and some room for numbers."""


def check_addresses() -> None:
    """Refuse a limit of the address space at which JAX would end the process by a crash."""
    try:
        import resource

        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    except ImportError:
        return
    if allowed != resource.RLIM_INFINITY and allowed < LEAST_ADDRESSES:
        few, least = (f"{count / 1e9:.2g} GB" for count in (allowed, LEAST_ADDRESSES))
        raise ValueError(
            f"this process may have {few} of addresses (`ulimit -v`), with which JAX would end by a crash. "
            f"Allow {least}: `ulimit -v {LEAST_ADDRESSES // 1024}`."
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
