"""`--set name=value`: single fields of a recipe changed, with the types that its records declare."""

import json
import types
import typing
from typing import Any

from pushforward.checks import check_choice
from pushforward.cli.errors import CommandError
from pushforward.frozen import Record
from pushforward.recipe.methods import METHODS, Method
from pushforward.recipe.table import Recipe

TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def choose_method(method: str, changes: list[str]) -> Method:
    """Return a method with the changes asked for; every complaint names the option."""
    try:
        chosen = METHODS[check_choice(method, "--method", METHODS)]
        found = parse(changes, chosen.recipe)
        return chosen.replace(**found) if found else chosen
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error


def parse(changes: list[str], recipe: Recipe) -> dict[str, Any]:
    """Return `["width=128", "annealing.num_sweeps=8"]` as a dictionary of typed values."""
    known = [name.removeprefix("training.") for name in recipe.names()]
    known = [name for name in known if name != "method" and not isinstance(_field(recipe, name)[1], Record)]
    found: dict[str, Any] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise CommandError(f"--set must be NAME=VALUE, such as `width=128`; got {change!r}.")
        if name == "method":
            raise CommandError("--set cannot change the method; use `--method`.")
        check_choice(name, "--set NAME", known)
        found[name] = _convert(name, text, _field(recipe, name)[0])
    return found


def _field(recipe: Recipe, name: str) -> tuple[Any, Any]:
    """Return the type that a field declares, and its value."""
    *path, last = recipe.path_of(name).split(".")
    record: Any = recipe
    for each in path:
        record = getattr(record, each)
    return typing.get_type_hints(type(record))[last], getattr(record, last)


def _convert(name: str, text: str, hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        if text.lower() == "none" and types.NoneType in typing.get_args(hint):
            return None
        (hint,) = (kind for kind in typing.get_args(hint) if kind is not types.NoneType)
    words = {int: "a whole number", float: "a number", bool: "true or false"}
    try:
        if hint is bool:
            return {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}[text.lower()]
        if typing.get_origin(hint) is tuple:
            return _frozen(json.loads(text))
        if hint is int:
            # `1e3` is a whole number, too; the recipe says what is too small.
            return int(float(text)) if float(text).is_integer() else int(text)
        return text if hint is Any else hint(text)
    except (KeyError, ValueError, OverflowError):
        wanted = words.get(hint, "a list such as [0.15, 0.4]")
        raise CommandError(f"--set {name} must be {wanted}; got {text!r}.") from None


def _frozen(value: Any) -> Any:
    """Return lists of numbers, and lists of these, as tuples."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if not isinstance(value, int | float):
        raise ValueError("a list holds numbers")  # noqa: TRY004 (said in other words by the caller)
    return value
