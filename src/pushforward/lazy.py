"""A package whose names are imported when they are first used: its stub says where each one is."""

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package, by the imports of its `__init__.pyi`.

    Type checkers read the stub, so a new name is one line, in one place.
    """
    # Not opened as a file, since a wheel may be imported as it is.
    tree = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    homes = {
        each.asname or each.name: (node.module or "", each.name) for node in imports for each in node.names
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inner = homes[name]
        found = None if module == package else importlib.import_module(module)
        # What a module does not hold is a module of its own.
        held = found is not None and inner in dir(found)
        value = getattr(found, inner) if held else importlib.import_module(f"{module}.{inner}")
        # Kept, so that this function is asked for each name only once.
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(homes)
