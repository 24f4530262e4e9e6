"""What a user's file may hold besides a log density: NumPyro and PyMC models, and their data."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx

from pushforward.arrays import read_npz
from pushforward.base import Target
from pushforward.cli.errors import CommandError
from pushforward.container import BadFileError


def read_data(path: Path | None) -> dict[str, Any]:
    """Return the arrays of `--data FILE.npz` by name; none where there is no such option."""
    if path is None:
        return {}
    if path.suffix != ".npz":
        raise CommandError(f"--data must be a .npz file of named arrays; got {path.name!r}.")
    try:
        return read_npz(path)
    except (BadFileError, OSError) as error:
        raise CommandError(f"--data: {error}") from error


_ANY = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def as_target(thing: Any, spec: str, dim: int | None, data: dict[str, Any]) -> Target:
    """Return what a user's file holds under a name as a target: one already, a model, or a log density."""
    if (made := _made(thing)) is not None:
        return made
    if not callable(thing):
        raise CommandError(
            f"TARGET {spec!r} must be a function of one point, a Target or a model; it is "
            f"{type(thing).__name__}."
        )
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        parameters = None
    if parameters is not None:
        names, kinds = [p.name for p in parameters], {p.kind for p in parameters}
        odd = [name for name in data if name not in names]
        if odd and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise CommandError(
                f"--data holds {', '.join(odd[:5])}, for which {spec!r} has no argument; it takes "
                f"{', '.join(names) or 'none'}."
            )
        needed = [p.name for p in parameters if p.default is p.empty and p.kind not in _ANY]
        if not set(needed) - data.keys():
            return _call(thing, data, spec)
    if inspect.isclass(thing):
        raise CommandError(
            f"TARGET {spec!r} is a class. Make one in the file, `target = {thing.__name__}(...)`, "
            "and name that."
        )
    if dim is None:
        raise CommandError(
            f"--dim is needed for {spec!r}: a function does not say how many coordinates it has. "
            "Add, for instance, `--dim 2`. If it is a NumPyro model, give its arguments by `--data FILE.npz`."
        )
    bound: Any = eqx.Partial(thing, **data) if data else thing
    return Target.from_log_density(bound, dim=dim, name=getattr(thing, "__name__", None))


def _made(thing: Any) -> Target | None:
    """Return a target, or a PyMC model as one, without importing PyMC to find out."""
    if isinstance(thing, Target):
        return thing
    if any(c.__name__ == "Model" and c.__module__.startswith("pymc.") for c in type(thing).__mro__):
        from pushforward.models import from_pymc

        return from_pymc(thing)
    return None


def _call(function: Callable[..., Any], data: dict[str, Any], spec: str) -> Target:
    """Call what needs nothing but its data: a NumPyro model, or what returns a Target or a PyMC model."""
    try:
        made = function(**data)
    except Exception as error:
        # A NumPyro model has no random numbers when it is called like this; its own way comes next.
        made = error
    if (found := _made(made)) is not None:
        return found
    if "numpyro" in sys.modules and _has_sites(function, data):
        from pushforward.models import from_numpyro

        return from_numpyro(function, **data)
    if isinstance(made, Exception):
        raise made
    raise CommandError(
        f"TARGET {spec!r} takes no argument, so it must return a Target; it returned {type(made).__name__}. "
        "A log density is a function of one point, `f(x)`; a NumPyro model has sites; a function may also "
        "return a PyMC model."
    )


def _has_sites(function: Callable[..., Any], data: dict[str, Any]) -> bool:
    """Whether a function, run as NumPyro runs a model, turns out to be one."""
    from numpyro import handlers

    sites = handlers.trace(handlers.seed(function, 0)).get_trace(**data)
    return any(site["type"] == "sample" for site in sites.values())
