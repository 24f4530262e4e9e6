"""From what is typed to a target: a built-in name, or `file.py:function` of the user's own."""

import ast
import difflib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import equinox as eqx

from pushforward import extensions
from pushforward.base import Target
from pushforward.checks import check_choice
from pushforward.cli.errors import CommandError
from pushforward.cli.models import as_made, call, check_names, is_pymc
from pushforward.targets import TARGETS

MODULE_NAME = "pushforward_user_model"


def is_file(spec: str) -> bool:
    """Whether a spec names a file of the user's rather than a built-in target."""
    return spec.partition(":")[0].endswith(".py") or ":" in spec


def find_target(spec: str, dim: int | None, data: dict[str, Any] | None = None) -> Target:
    """Return the target that `spec` names; `dim` is needed for a plain function, `data` for a model's."""
    if is_file(spec):
        return _from_file(spec, dim, data or {})
    if data:
        raise CommandError(f"--data is for a model of your own, FILE.py:FUNCTION; {spec!r} is built in.")
    if words := extensions.remedy(extensions.TARGETS, spec):
        raise CommandError(f"TARGET {words}")
    try:
        build = TARGETS[check_choice(spec, "TARGET", TARGETS)]
    except ValueError as error:
        raise CommandError(
            f"{error} `pushforward targets` describes them; your own is `file.py:function`."
        ) from None
    if dim is not None and "dim" in inspect.signature(build).parameters:
        return build(dim=dim)  # pyright: ignore[reportCallIssue]
    return _of_dim(build(), dim, spec)


def _from_file(spec: str, dim: int | None, data: dict[str, Any]) -> Target:
    file, _, name = spec.rpartition(":")
    if not file:
        file, name = name, ""
    path = Path(file)
    if not path.is_file():
        raise CommandError(f"TARGET {spec!r}: there is no file {path}.")
    names = _names(path)
    if not name:
        raise CommandError(
            f"TARGET must name a function in the file, `{path}:FUNCTION`. "
            f"It defines {', '.join(names) or 'none'}."
        )
    with _lines_of(path):
        module = _run_file(path.resolve())
    if not hasattr(module, name):
        near = difflib.get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise CommandError(
            f"TARGET: {path} has no {name!r}. It defines {', '.join(names) or 'nothing'}.{hint}"
        )
    with _lines_of(path):
        return _as_target(getattr(module, name), spec, dim, data)


def _names(path: Path) -> list[str]:
    """Return the public names that a file defines, read without running it."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        place = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise CommandError(f"{path}{place}: this is not Python: {reason}.") from error
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [leaf.id for leaf in node.targets if isinstance(leaf, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def _run_file(path: Path) -> ModuleType:
    """Import a file by its path, with its own folder searched first, as `python file.py` would."""
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Both stay for the whole run: functions may import when they are called.
    sys.path.insert(0, str(path.parent))
    sys.modules[MODULE_NAME] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _lines_of(path: Path) -> Iterator[None]:
    """Turn whatever the user's file raises into one message with its line."""
    try:
        yield
    except CommandError:
        raise
    except (Exception, SystemExit) as error:
        raise CommandError(
            f"{line_of(error, path)}: {type(error).__name__}: {str(error) or 'no message'}"
        ) from error


def line_of(error: BaseException, path: Path) -> str:
    """Return `file.py, line 7`: the innermost line of the user's file that the error passed through."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == path.resolve()
    ]
    return f"{path.name}, line {lines[-1]}" if lines else path.name


def _as_target(thing: Any, spec: str, dim: int | None, data: dict[str, Any]) -> Target:
    function: Any = thing
    if is_pymc(thing):
        return _of_dim(as_made(thing, spec), dim, spec)
    if isinstance(thing, Target):
        return _of_dim(thing, dim, spec)
    if not callable(thing):
        raise CommandError(
            f"TARGET {spec!r} must be a function of one point, a Target or a model; it is "
            f"{type(thing).__name__}."
        )
    check_names(thing, data, spec)
    if _needs_arguments(thing, data):
        if inspect.isclass(thing):
            raise CommandError(
                f"TARGET {spec!r} is a class. Make one in the file, `target = {thing.__name__}(...)`, "
                "and name that."
            )
    else:
        return _of_dim(call(thing, data, spec), dim, spec)
    if dim is None:
        raise CommandError(
            f"--dim is needed for {spec!r}: a function does not say how many coordinates it has. "
            "Add, for instance, `--dim 2`. If it is a NumPyro model, give its arguments by `--data FILE.npz`."
        )
    bound = eqx.Partial(function, **data) if data else function
    return Target.from_log_density(bound, dim=dim, name=getattr(function, "__name__", None))


def _needs_arguments(thing: Any, data: dict[str, Any]) -> bool:
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return True
    optional = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return any(p.default is p.empty and p.kind not in optional and p.name not in data for p in parameters)


def _of_dim(target: Target, dim: int | None, spec: str) -> Target:
    if dim is not None and dim != target.dim:
        raise CommandError(
            f"--dim must be {target.dim}, which is what {spec!r} has, or be left out; got {dim}."
        )
    return target
