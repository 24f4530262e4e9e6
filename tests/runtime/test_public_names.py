"""The package imports its names when they are first used: the table is complete, and type checkers see the same."""

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

import pushforward as pf


def test_every_public_name_is_found_and_told_to_type_checkers():
    tree = ast.parse(Path(pf.__file__).read_text())
    told = {
        alias.asname: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {name: f"pushforward.{home}" for name, home in pf._NAMES.items()}
    assert told == {**homes, **dict.fromkeys(pf._MODULES, "pushforward")}
    for name, home in homes.items():
        assert getattr(pf, name) is getattr(importlib.import_module(home), name)
        # A module of that name would take its place as soon as somebody imports it.
        assert importlib.util.find_spec(f"pushforward.{name}") is None
    assert set(dir(pf)) >= {*pf._NAMES, *pf._MODULES}
    with pytest.raises(AttributeError, match="has no attribute 'fitt'"):
        _ = pf.fitt
