import json

import jax
import numpy as np
import pytest
import typer
from cli_sizes import TINY
from typer.testing import CliRunner

import pushforward as pf
from pushforward.cli.errors import reported
from pushforward.cli.options import whole
from pushforward.cli.overrides import parse
from pushforward.runs import load_run


def test_a_run_folder_holds_sampler_story_and_history(run_folder):
    assert sorted(path.name for path in run_folder.iterdir()) == ["history.jsonl", "run.json", "sampler.pf"]
    run = load_run(run_folder)
    assert run.about["target"] == {"spec": "rosenbrock", "name": "rosenbrock", "dim": 2}
    assert run.about["outcome"] == "FINISHED"
    assert run.about["settings"]["width"] == 8
    assert run.about["changed"]["num_steps"] == 4
    assert [row["step"] for row in run.history] == [1, 2, 3, 4]
    for metric in ("ksd_imq_v", "sliced_w2"):
        assert run.about["metrics"][metric]["value"] > run.about["metrics"][metric]["floor"] > 0
    assert run.sampler().sample(jax.random.key(0), 5).shape == (5, 2)


def test_the_recorded_command_gives_the_same_sampler_again(invoke, run_folder, tmp_path):
    about = load_run(run_folder).about
    words = about["command"].split()
    assert words[:2] == ["pushforward", "fit"]
    result = invoke(*words[1:], "--out", tmp_path / "again", "--quiet")
    assert result.exit_code == 0, result.output
    key = jax.random.key(3)
    np.testing.assert_array_equal(
        load_run(run_folder).sampler().sample(key, 8), pf.load(tmp_path / "again/sampler.pf").sample(key, 8)
    )


def test_the_summary_names_outcome_figures_files_and_the_next_command(invoke, tmp_path):
    result = invoke("fit", "gaussian", *TINY, "--out", tmp_path / "a")
    assert result.exit_code == 0, result.output
    for words in ("finished", "train", "ksd_imq_v", "times the floor", "run.json", "pushforward sample"):
        assert words in result.stdout
    assert str(tmp_path / "a") in result.stdout.replace("\n", "")


def test_a_folder_with_something_in_it_is_left_alone_before_any_training(invoke, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    result = invoke("fit", "rosenbrock", *TINY, "--out", tmp_path)
    assert result.exit_code == 2
    assert "new or empty" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_that_cannot_be_made_is_refused(invoke, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file/under"):
        result = invoke("fit", "rosenbrock", *TINY, "--out", out)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: `--out` must")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rosenbrok"], "Did you mean 'rosenbrock'?"),
        (["rosenbrock", "--method", "fischer"], "Did you mean 'fisher'?"),
        (["rosenbrock", "--set", "widht=3"], "Did you mean 'width'?"),
        (["rosenbrock", "--set", "width"], "NAME=VALUE"),
        (["rosenbrock", "--set", "width=wide"], "a whole number; got 'wide'"),
        (["rosenbrock", "--set", "width=0"], "`width` must be a positive integer"),
        (["rosenbrock", "--set", "skip=perhaps"], "true or false"),
        (["rosenbrock", "--set", "method=kl"], "use `--method`"),
        (["rosenbrock", "--set", "activation=sillu"], "Did you mean 'silu'?"),
        (["rosenbrock", "--dim", "3"], "--dim must be 2"),
        (
            ["rosenbrock", "--dim", "3e0"],
            "--dim must be 2, which is what 'rosenbrock' has, or be left out; got 3.",
        ),
        (["rosenbrock", "--dim", "0"], "'--dim'"),
        (["rosenbrock", "--steps", "0"], "'--steps'"),
        (["rosenbrock", "--steps", "1.5"], "must be a whole number of at least 1"),
        (["rosenbrock", "--budget", "soon"], "'90s', '5m' or '1.5h'"),
        (["rosenbrock", "--seed", "-1"], "'--seed'"),
        (["rosenbrock", "--seed", "1e10"], "'--seed'"),
        (["nothing.py:f"], "there is no file nothing.py"),
        ([], "TARGET"),
    ],
)
def test_a_bad_argument_is_one_message_and_code_2(invoke, tmp_path, words, message):
    result = invoke("fit", *words, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "run").exists()


def test_whole_numbers_are_read_alike():
    assert [whole()(text) for text in ("1000", "1_000", "1e3", "1E3")] == [1000] * 4
    assert whole(0)("0") == 0
    for text in ("1.5", "15e-1", "0", "-3", "1e999", "nan", "ten", ""):
        with pytest.raises(typer.BadParameter, match=r"a whole number of at least 1; got"):
            whole()(text)
    with pytest.raises(typer.BadParameter, match=r"at least 0 and at most 10"):
        whole(0, 10)("11")


def test_settings_are_converted_to_their_types():
    changes = ["width=128", "learning_rate=1e-4", "skip=no", "latent_dim=none", "matching=none"]
    assert parse(changes, pf.Recipe()) == {
        "width": 128, "learning_rate": 1e-4, "skip": False, "latent_dim": None, "matching": "none",
    }  # fmt: skip
    changes = ["latent_dim=3", "annealing.num_particles=4e3", "rise=[0.1, 0.5]"]
    assert parse(changes, pf.Recipe()) == {
        "latent_dim": 3, "annealing.num_particles": 4000, "rise": (0.1, 0.5),
    }  # fmt: skip


def test_a_diverged_fit_is_written_and_fails(invoke, tmp_path):
    words = [*TINY, "--set", "learning_rate=1e30", "--steps", "2e2"]
    result = invoke("fit", "rosenbrock", *words, "--out", tmp_path / "run", "--quiet")
    assert result.exit_code == 1
    assert "Try a smaller `learning_rate`" in result.stderr
    assert f"The last finite sampler is in {tmp_path / 'run'}" in result.stderr
    about = json.loads((tmp_path / "run/run.json").read_text())
    assert about["outcome"] == "DIVERGED"
    assert about["message"] in result.stderr
    # Of a run, its folder is enough.
    assert pf.load(tmp_path / "run").dim == 2


def test_a_mistake_of_ours_keeps_its_traceback():
    def break_down():
        np.reshape(np.zeros(3), (2, 2))

    app = typer.Typer()
    app.command()(reported(break_down))
    result = CliRunner().invoke(app)
    assert result.exit_code == 1
    assert isinstance(result.exception, ValueError)
