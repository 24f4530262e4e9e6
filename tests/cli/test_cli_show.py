import json
import re
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.cli.console import clean, spark
from pushforward.draws import Draws, load_draws
from pushforward.files import BadFileError
from pushforward.runs import check_folder, free_name, load_run
from pushforward.sampler import Sampler


@pytest.fixture
def copy(run_folder, tmp_path):
    shutil.copytree(run_folder, tmp_path / "run")
    return tmp_path / "run"


def test_a_run_is_summed_up(invoke, run_folder):
    result = invoke("show", run_folder)
    assert result.exit_code == 0, result.output
    for words in (
        "rosenbrock, 2 coordinates",
        "kl",
        "width=8",
        "finished",
        "train",
        "ksd_imq_v",
        "KSD",
        "step",
    ):
        assert words in result.stdout


def test_a_file_is_summed_up(invoke, run_folder):
    result = invoke("show", run_folder / "sampler.pf")
    assert result.exit_code == 0, result.output
    for words in ("rosenbrock", r"Normal\(\d+\) -> MLP -> 2", "width=8", "finished"):
        assert re.search(words, result.stdout)


def test_json_is_what_the_run_says(invoke, run_folder):
    result = invoke("show", run_folder, "--json")
    assert json.loads(result.stdout) == json.loads((run_folder / "run.json").read_text())
    assert json.loads(invoke("show", run_folder / "sampler.pf", "--json").stdout)["method"] == "kl"


def test_text_of_a_stranger_does_not_steer_the_terminal(invoke, copy):
    about = json.loads((copy / "run.json").read_text())
    about["message"] = "\x1b[2J[bold]gone[/bold]\x07"
    (copy / "run.json").write_text(json.dumps(about))
    result = invoke("show", copy)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "[bold]gone[/bold]" in result.stdout
    assert len(clean("x" * 1000)) == 200


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"target": {}, "method": 3, "settings": [], "outcome": None, "phases": 7, "metrics": []},
        {
            "target": ["x"],
            "phases": [None, {"phase": {}, "seconds": "1"}],
            "metrics": {"ksd": {"value": "low"}},
        },
        {
            "method": ["kl"],
            "settings": {"width": {"a": [1]}},
            "metrics": {"ksd": {"value": 1.0, "floor": 0}},
            "message": 10**400,
        },
    ],
)
def test_a_file_may_tell_any_story(invoke, run_folder, tmp_path, about):
    sampler = load_run(run_folder).sampler()
    told = Sampler(sampler.latent, sampler.network, sampler.frame, json.dumps(about))
    told.save(tmp_path / "told.pf")
    result = invoke("show", tmp_path / "told.pf")
    assert result.exit_code == 0, result.output
    assert "-> 2" in result.stdout


def _without(name):
    return lambda about: about.pop(name)


BROKEN = {
    "no target": _without("target"),
    "no metrics": _without("metrics"),
    "no mark": _without("format"),
    "another version": lambda about: about.update(version=99),
    "settings in a list": lambda about: about.update(settings=[]),
    "a seed of text": lambda about: about.update(seed="0"),
    "a phase of text": lambda about: about.update(phases=["train"]),
    "a phase without seconds": lambda about: about.update(phases=[{"phase": "train", "seconds": "1"}]),
    "an infinite metric": lambda about: about["metrics"].update(ksd={"value": float("inf")}),
    "a metric of text": lambda about: about["metrics"].update(ksd={"value": "low"}),
    "a true dimension": lambda about: about["target"].update(dim=True),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_of_another_shape_is_refused(invoke, copy, name):
    about = json.loads((copy / "run.json").read_text())
    BROKEN[name](about)
    (copy / "run.json").write_text(json.dumps(about))
    with pytest.raises(BadFileError, match=r"run\.json"):
        load_run(copy)
    result = invoke("show", copy)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize("file", ["run.json", "history.jsonl", "sampler.pf"])
@pytest.mark.parametrize("damage", ["gone", "cut", "noise", "nested"])
def test_a_damaged_run_is_refused_with_the_name_of_the_file(invoke, copy, file, damage):
    path = copy / file
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        changes = {"cut": data[: len(data) // 2], "noise": b"\xff\xfe" + data, "nested": b"[" * 100_000}
        path.write_bytes(changes[damage])
    result = invoke("sample", copy, "-n", 5, "--out", copy.parent / "draws.npy")
    assert result.exit_code == 2
    assert file in result.stderr
    assert "Traceback" not in result.output


def test_a_name_that_is_nothing_is_refused(invoke, tmp_path):
    result = invoke("show", tmp_path / "nothing")
    assert result.exit_code == 2
    assert "there is no" in result.stderr
    assert "is not a run" in invoke("show", tmp_path).stderr


def test_free_names_count_up(tmp_path):
    assert free_name(tmp_path / "demo") == tmp_path / "demo"
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo-2").mkdir()
    assert free_name(tmp_path / "demo") == tmp_path / "demo-3"
    assert check_folder(tmp_path / "demo") == tmp_path / "demo"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "demo-2"]


def test_small_curves_rise_and_fall():
    assert spark([0.0, 1.0, 0.5]) == "▁█▅"
    assert spark([2.0, 2.0], ascii_only=True) == "__"
    assert spark([]) == ""


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "parquet", "nc"])
def test_a_file_of_draws_is_summarised(invoke, run_folder, tmp_path, suffix):
    path = tmp_path / f"draws.{suffix}"
    assert invoke("sample", run_folder, "-n", "5e2", "--seed", "1e1", "--out", path, "-q").exit_code == 0
    result = invoke("show", path)
    assert result.exit_code == 0, result.output
    assert "500 draws" in result.stdout
    assert "x[1]" in result.stdout
    figures = json.loads(invoke("show", path, "--json").stdout)
    mean = np.mean(np.asarray(load_draws(path)["x"], np.float64)[:, 1])
    assert figures["draws"] == 500
    np.testing.assert_allclose(figures["summary"]["x[1]"]["mean"], mean, rtol=1e-5)


def test_names_of_draws_do_not_steer_the_terminal(invoke, tmp_path):
    np.savez(tmp_path / "d.npz", **{"a\x1b[2J": np.ones(4)})
    result = invoke("show", tmp_path / "d.npz")
    assert "\x1b" not in result.output


def test_a_damaged_file_of_draws_is_named(invoke, tmp_path):
    Draws.of(jnp.ones((9, 2))).save(tmp_path / "d.npz")
    (tmp_path / "d.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:100])
    result = invoke("show", tmp_path / "d.npz")
    assert result.exit_code != 0
    assert "d.npz" in result.stderr
