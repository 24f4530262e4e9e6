"""From what is typed to a target: a built-in name, or `file.py:function` of the user's own."""

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pushforward import extensions
from pushforward.base import Target
from pushforward.checks import check_choice
from pushforward.cli.errors import CommandError
from pushforward.cli.models import as_target
from pushforward.targets import TARGETS

MODULE_NAME = "pushforward_user_model"


def is_file(spec: str) -> bool:
    """Whether a spec names a file of the user's rather than a built-in target."""
    return spec.partition(":")[0].endswith(".py") or ":" in spec


def model_of(spec: str) -> Path | None:
    """Return the user's file that a spec names, if it names one."""
    return Path(spec.rpartition(":")[0]) if is_file(spec) else None


def find_target(
    spec: str, dim: int | None, data: dict[str, Any] | None = None, *, otherwise: int | None = None
) -> Target:
    """Return the target that `spec` names; `dim` is needed for a plain function, `data` for a model's.

    What does not say its size and is not given one by `dim` has the size `otherwise`.
    """
    if is_file(spec):
        found = _from_file(spec, dim or otherwise, data or {})
    elif data:
        raise CommandError(f"--data is for a model of your own, FILE.py:FUNCTION; {spec!r} is built in.")
    else:
        found = _built_in(spec, dim or otherwise)
    if dim is not None and dim != found.dim:
        raise CommandError(
            f"--dim must be {found.dim}, which is what {spec!r} has, or be left out; got {dim}."
        )
    return found


def _built_in(spec: str, dim: int | None) -> Target:
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
    return build()


def _from_file(spec: str, dim: int | None, data: dict[str, Any]) -> Target:
    file, _, name = spec.rpartition(":") if ":" in spec else (spec, "", "")
    path = Path(file)
    if not path.is_file():
        raise CommandError(f"TARGET {spec!r}: there is no file {path}.")
    with _lines_of(path):
        held = _run_file(path.resolve())
    names = [each for each, thing in held.items() if not each.startswith("_") and _is_own(thing)]
    if not name:
        raise CommandError(
            f"TARGET must name a function in the file, `{path}:FUNCTION`. "
            f"It defines {', '.join(names) or 'none'}."
        )
    if name not in held:
        try:
            check_choice(name, f"{path}:FUNCTION", names)
        except ValueError as error:
            raise CommandError(f"TARGET: {error}") from None
    with _lines_of(path):
        return as_target(held[name], spec, dim, data)


def _is_own(thing: Any) -> bool:
    """Whether a file made this itself, as far as can be told, and it may be a target."""
    if inspect.isfunction(thing) or inspect.isclass(thing):
        return thing.__module__ == MODULE_NAME
    return isinstance(thing, Target) or callable(thing)


def _run_file(path: Path) -> dict[str, Any]:
    """Import a file by its path, with its own folder searched first, as `python file.py` would."""
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Both stay for the whole run: functions may import when they are called.
    sys.path.insert(0, str(path.parent))
    sys.modules[MODULE_NAME] = module
    spec.loader.exec_module(module)
    return vars(module)


@contextmanager
def _lines_of(path: Path) -> Iterator[None]:
    """Turn whatever the user's file raises into one message with its line."""
    try:
        yield
    except CommandError:
        raise
    except SyntaxError as error:
        place = f"{error.filename or path}, line {error.lineno}"
        raise CommandError(f"{place}: this is not Python: {error.msg}.") from error
    except (Exception, SystemExit) as error:
        raise CommandError(
            f"{line_of(error, path)}: {type(error).__name__}: {str(error) or 'no message'}"
        ) from error


def line_of(error: BaseException, path: Path) -> str:
    """Return `file.py, line 7`: the innermost line of the user's file that the error passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return f"{path.name}, line {lines[-1]}" if lines else path.name
