"""`--set name=value`: single settings changed, with the types that `Settings` declares."""

import types
import typing
from typing import Any

from pushforward.checks import check_choice
from pushforward.cli.errors import CommandError
from pushforward.training import PRESETS, Settings

TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def choose_settings(method: str, steps: int | None, changes: list[str]) -> Settings:
    """Return a method's settings with the changes asked for; every complaint names the option."""
    try:
        settings = PRESETS[check_choice(method, "--method", PRESETS)]
        settings = settings.replace(**parse(changes))
        return settings if steps is None else settings.replace(num_steps=steps)
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error


def parse(changes: list[str]) -> dict[str, Any]:
    """Return `["width=128", "skip=no"]` as `{"width": 128, "skip": False}`."""
    hints = typing.get_type_hints(Settings)
    del hints["method"]
    found: dict[str, Any] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise CommandError(f"--set must be NAME=VALUE, such as `width=128`; got {change!r}.")
        if name == "method":
            raise CommandError("--set cannot change the method; use `--method`.")
        check_choice(name, "--set NAME", hints)
        found[name] = _convert(name, text, hints[name])
    return found


def _convert(name: str, text: str, hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
        if text.lower() == "none" and len(kinds) < len(typing.get_args(hint)):
            return None
        (hint,) = kinds
    if hint is bool:
        if text.lower() not in TRUE + FALSE:
            raise CommandError(f"--set {name} must be true or false; got {text!r}.")
        return text.lower() in TRUE
    try:
        return hint(text)
    except ValueError:
        wanted = {int: "a whole number", float: "a number"}[hint]
        raise CommandError(f"--set {name} must be {wanted}; got {text!r}.") from None
