import importlib
import subprocess
import sys

import pytest

NEEDS = {
    "langevin": "blackjax",
    "hmc": "blackjax",
    "mala": "blackjax",
    "nuts": "blackjax",
    "flow": "flowjax",
}


@pytest.mark.parametrize(("module", "package"), NEEDS.items())
def test_a_missing_package_is_named_with_its_extra(module, package, monkeypatch):
    for name in list(sys.modules):
        if name == package or name.startswith(package + "."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"pushforward.baselines.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"`{package}`.*pip install 'pushforward\[baselines\]'"):
        importlib.import_module(f"pushforward.baselines.{module}")


def test_the_package_itself_imports_neither():
    code = (
        "import sys, pushforward.baselines, pushforward.baselines.svgd;"
        "sys.exit('blackjax' in sys.modules or 'flowjax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
