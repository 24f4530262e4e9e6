"""Where records come from: the commit of the code, the date, and the kind of machine."""

import datetime
import platform
import subprocess
from functools import cache
from pathlib import Path


@cache
def commit() -> str | None:
    """Return the commit of the code, with a `+` where files differ from it; `None` outside of Git."""
    folder = Path(__file__).parent
    digits = _git(folder, "rev-parse", "--short=12", "HEAD")
    if digits is None:
        return None
    return digits + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")


def _git(folder: Path, *words: str) -> str | None:
    try:
        found = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def today() -> str:
    """Return the date in universal time."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def host() -> str:
    """Return the kind of machine: system and processor family, and no name."""
    return f"{platform.system()} {platform.machine()}"
