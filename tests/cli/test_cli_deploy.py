"""`export` and `break-even` from the command line; what they compute is tested elsewhere."""

import json
import shutil

import onnx


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


def test_break_even(invoke, run_folder):
    shown = invoke("break-even", run_folder, "--budget", "1")
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.output.split())
    assert "target rosenbrock" in words
    assert "measured on" in words
    assert "break-even" in words
    told = invoke("break-even", run_folder / "sampler.pf", "--json", "--budget", "1")
    assert told.exit_code == 0, told.output
    figures = json.loads(told.output)
    assert figures["target"] == "rosenbrock"
    # Rounds of 250 steps of four chains, the last of which began within the budget; a second more for a
    # machine that has much else to do.
    rounds, rest = divmod(figures["nuts_draws"], 1000)
    assert rest == 0
    sampling = figures["nuts_seconds_per_effective_draw"] * figures["nuts_ess"]
    assert rounds == 1 or figures["nuts_setup_seconds"] + sampling * (rounds - 1) / rounds < 2.0


def test_break_even_never_runs_a_file_unasked(invoke, run_folder, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    about = json.loads((folder / "run.json").read_text())
    about["target"]["spec"] = "evil.py:density"
    (folder / "run.json").write_text(json.dumps(about))
    (tmp_path / "evil.py").write_text("raise SystemExit('run!')")
    found = invoke("break-even", folder)
    assert found.exit_code == 2
    assert "--target is needed" in found.output
