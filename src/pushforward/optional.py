"""Packages that come with an extra: imported when they are needed, named where they are not installed."""

import importlib
from typing import Any


def need(what: str, package: str, extra: str, *modules: str, alone: bool = False) -> Any:
    """Import a package and return it, or raise an error that says what needs it and how to get it.

    **Arguments:**

    - `what`: the subject and the verb, such as "Exporting stands on".
    - `package`, `extra`: what is imported, and the extra of ours that brings it.
    - `modules`: parts of the package that it does not import by itself.
    - `alone`: whether the package may as well be installed by itself.
    """
    try:
        for module in modules:
            importlib.import_module(f"{package}.{module}")
        return importlib.import_module(package)
    except ImportError as error:
        either = f"`pip install {package}` or " if alone else ""
        raise ImportError(
            f"{what} `{package}`, which is not installed. "
            f"Install it with {either}`pip install 'pushforward[{extra}]'`."
        ) from error
