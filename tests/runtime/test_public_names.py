"""Packages import their names when they are first used, by the stubs that type checkers read."""

import ast
import importlib
import importlib.util
import types
from pathlib import Path

import pytest

import pushforward as pf

ROOT = Path(pf.__file__).parent
STUBS = {".".join(path.parent.relative_to(ROOT.parent).parts): path for path in ROOT.rglob("__init__.pyi")}


@pytest.mark.parametrize("package", STUBS)
def test_every_public_name_is_found_where_type_checkers_are_told(package):
    imports = [
        node for node in ast.parse(STUBS[package].read_text()).body if isinstance(node, ast.ImportFrom)
    ]
    told = {alias.asname: (node.module, alias.name) for node in imports for alias in node.names}
    module = importlib.import_module(package)
    assert set(dir(module)) >= set(told)
    for name, (home, inner) in told.items():
        # Type checkers take a name for public where it is imported `as` itself.
        assert name == inner
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            assert value.__name__ == f"{home}.{name}"
        else:
            assert value is getattr(importlib.import_module(home), name)
            # A module of that name would take its place as soon as somebody imports it.
            assert importlib.util.find_spec(f"{package}.{name}") is None
    with pytest.raises(AttributeError, match="has no attribute 'fitt'"):
        _ = module.fitt
