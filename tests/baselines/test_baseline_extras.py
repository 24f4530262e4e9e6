import importlib
import subprocess
import sys

import pytest


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    for name in list(sys.modules):
        if name.startswith("blackjax."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "blackjax", None)
    monkeypatch.delitem(sys.modules, "pushforward.payback.nuts", raising=False)
    with pytest.raises(ImportError, match=r"`blackjax`.*pip install 'pushforward\[mcmc\]'"):
        importlib.import_module("pushforward.payback.nuts")


def test_the_packages_themselves_import_neither():
    code = (
        "import sys, pushforward.payback, pushforward.mcmc.exchange, reproduce.rivals.svgd;"
        "sys.exit('blackjax' in sys.modules or 'flowjax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
