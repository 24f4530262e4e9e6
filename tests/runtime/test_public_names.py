"""The package imports its names when they are first used, by the stub that type checkers read."""

import ast
import importlib
import importlib.util
import types
from pathlib import Path

import pytest

import pushforward as pf


def test_every_public_name_is_found_where_type_checkers_are_told():
    tree = ast.parse(Path(pf.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    told = {alias.asname: (node.module, alias.name) for node in imports for alias in node.names}
    assert set(dir(pf)) >= set(told)
    for name, (home, inner) in told.items():
        # Type checkers take a name for public where it is imported `as` itself.
        assert name == inner
        value = getattr(pf, name)
        if isinstance(value, types.ModuleType):
            assert value.__name__ == f"{home}.{name}"
        else:
            assert value is getattr(importlib.import_module(home), name)
            # A module of that name would take its place as soon as somebody imports it.
            assert importlib.util.find_spec(f"pushforward.{name}") is None
    with pytest.raises(AttributeError, match="has no attribute 'fitt'"):
        _ = pf.fitt
