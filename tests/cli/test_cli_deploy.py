"""`export` and `break-even` from the command line; what they compute is tested elsewhere."""

import json

import onnx
import pytest

from pushforward import payback
from pushforward.payback import BreakEven

FOUND = BreakEven("rosenbrock", 40.0, 1e-6, 4.0, 1e-3, 8000, 1500.0, 1.0, 0.0)


@pytest.fixture
def asked(monkeypatch):
    """Leave NUTS out: what is measured is told, and what was asked for is kept."""
    calls = []

    def measure(key, sampler, target, *, budget):
        calls.append((sampler.dim, target.name, budget))
        return FOUND

    monkeypatch.setattr(payback, "break_even", measure)
    return calls


def test_export(invoke, run_folder, tmp_path):
    out = tmp_path / "r.onnx"
    assert invoke("export", run_folder, "--out", out).exit_code == 0
    onnx.checker.check_model(str(out))
    again = invoke("export", run_folder, "--out", out)
    assert again.exit_code == 2
    assert "Add --force" in again.output
    assert invoke("export", run_folder, "--out", out, "--force").exit_code == 0
    wrong = invoke("export", run_folder, "--out", tmp_path / "r.pf")
    assert wrong.exit_code == 2
    assert "must end in `.onnx`" in wrong.output


def test_break_even(invoke, run_folder, asked):
    shown = invoke("break-even", run_folder, "--budget", "5")
    assert shown.exit_code == 0, shown.output
    assert "after 36,000 effective draws" in shown.output
    assert asked == [(2, "rosenbrock", 5.0)]
    told = invoke("break-even", run_folder / "sampler.pf", "--json")
    assert json.loads(told.output)["nuts_ess"] == 1500.0


def test_break_even_never_runs_a_file_unasked(invoke, run_folder, tmp_path, asked):
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    about = json.loads((folder / "run.json").read_text())
    about["target"]["spec"] = "evil.py:density"
    (folder / "run.json").write_text(json.dumps(about))
    (tmp_path / "evil.py").write_text("raise SystemExit('run!')")
    found = invoke("break-even", folder)
    assert found.exit_code == 2
    assert "--target is needed" in found.output
    assert not asked
