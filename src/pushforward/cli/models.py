"""What a user's file may hold besides a log density: NumPyro and PyMC models, and their data."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pushforward.base import Target
from pushforward.cli.errors import CommandError


def read_data(path: Path | None) -> dict[str, Any]:
    """Return the arrays of `--data FILE.npz` by name; none where there is no such option."""
    if path is None:
        return {}
    from pushforward.arrays import read_npz
    from pushforward.container import BadFileError

    if path.suffix != ".npz":
        raise CommandError(f"--data must be a .npz file of named arrays; got {path.name!r}.")
    try:
        return read_npz(path)
    except (BadFileError, OSError) as error:
        raise CommandError(f"--data: {error}") from error


def is_pymc(thing: Any) -> bool:
    """Whether something is a PyMC model, without importing PyMC to find out."""
    return any(c.__name__ == "Model" and c.__module__.startswith("pymc.") for c in type(thing).__mro__)


def check_names(function: Any, data: dict[str, Any], spec: str) -> None:
    """Refuse data that the function has no arguments for."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    names = [p.name for p in parameters]
    odd = [name for name in data if name not in names]
    if odd:
        raise CommandError(
            f"--data holds {', '.join(odd[:5])}, for which {spec!r} has no argument; it takes "
            f"{', '.join(names) or 'none'}."
        )


def call(function: Callable[..., Any], data: dict[str, Any], spec: str) -> Target:
    """Call what needs nothing but its data: a NumPyro model, or what returns a Target or a PyMC model."""
    made, failure = None, None
    try:
        made = function(**data)
    except Exception as error:
        # A NumPyro model has no random numbers when it is called like this; its own way comes next.
        failure = error
    if isinstance(made, Target) or is_pymc(made):
        return as_made(made, spec)
    if "numpyro" in sys.modules and _has_sites(function, data):
        from pushforward.models import from_numpyro

        return from_numpyro(function, **data)
    if failure is not None:
        raise failure
    return as_made(made, spec)


def _has_sites(function: Callable[..., Any], data: dict[str, Any]) -> bool:
    """Whether a function, run as NumPyro runs a model, turns out to be one."""
    from numpyro import handlers

    sites = handlers.trace(handlers.seed(function, 0)).get_trace(**data)
    return any(site["type"] == "sample" for site in sites.values())


def as_made(made: Any, spec: str) -> Target:
    """Return what a function returned as a target."""
    if isinstance(made, Target):
        return made
    if is_pymc(made):
        from pushforward.models import from_pymc

        return from_pymc(made)
    raise CommandError(
        f"TARGET {spec!r} takes no argument, so it must return a Target; it returned "
        f"{type(made).__name__}. A "
        "log density is a function of one point, `f(x)`; a NumPyro model has sites; a function may "
        "also return a PyMC model."
    )
