"""The smoke preset on made data: every kind of row once, resumption, refusals, the report."""

import json

import equinox as eqx
import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from pushforward.cli import app
from pushforward.frame import InFrame
from reproduce.data import stand_in
from reproduce.records import Header, read, write
from reproduce.rivals import laplace
from reproduce.rivals.minibatched import minibatched
from reproduce.studies.covertype import PRESETS, plan, run
from reproduce.studies.covertype.case import Case, Store, check_memory, load
from reproduce.studies.covertype.judge import Judge
from reproduce.studies.covertype.reference import nuts_row
from reproduce.studies.covertype.run import WORK, rows
from reproduce.studies.covertype.settings import METHODS, NOISE, SLOW, STAGES, method_of, paper_recipe
from reproduce.studies.covertype.work import baseline_row, ours_row
from reproduce.studies.row import DONE, Row, finished
from reproduce.targets import expand

MAIN = ("nuts", "laplace", "ours", "sgld", "dsvi-frame", "noise")
"""One row of each kind; the others differ in the objective alone, and some compile for long."""

SMOKE = PRESETS["smoke"].replace(methods=MAIN)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    run(SMOKE, folder, command="pushforward study covertype --preset smoke")
    return folder


def test_every_row_records_what_the_issue_asks_for(folder):
    header, records = read(folder / "covertype.jsonl")
    assert (header.study, header.preset) == ("covertype", "smoke")
    by_method: dict[str, set] = {}
    for record in records:
        by_method.setdefault(record.method, set()).add(record.metric)
    for method in set(MAIN) - {"noise"}:
        assert {"accuracy", "log_predictive", "calibration_error", "train_seconds", DONE} <= by_method[method]
        assert "peak_memory_gb" in by_method[method]
    for method in set(MAIN) - {"noise", "nuts"}:
        assert {"mean_error", "mean_share", "sd_ratio", "sd_share"} <= by_method[method]
    for method in ("ours", "laplace", "dsvi-frame"):
        assert {"seconds_per_100_draws", "speed_ratio", "break_even"} <= by_method[method]
    assert {"ess", "rhat", "acceptance", "seconds_per_effective_draw"} <= by_method["nuts"]
    assert any(metric.startswith("score_noise_expanded") for metric in by_method["noise"])
    judged = [r for r in records if r.metric in ("accuracy", "log_predictive") and r.method != "nuts"]
    assert all(r.floor is not None for r in judged)


def test_three_steps_of_our_recipe_stand_near_nuts_even_here(folder):
    """600 rows and 20 draws: the figures mean little, but their units must be right."""
    found = {(r.method, r.metric): r for r in read(folder / "covertype.jsonl")[1]}
    ours = found["ours", "accuracy"]
    assert 0.5 < ours.value < 1.0
    assert ours.floor is not None
    assert abs(ours.value - ours.floor) < 0.1
    assert found["ours", "sd_ratio"].value == pytest.approx(1.0, abs=0.5)
    noise = {r.metric: r.value for r in found.values() if r.method == "noise"}
    assert noise["score_noise_plain_500"] > 3 * noise["score_noise_expanded_500"]
    assert noise["score_noise_plain_50"] > 2 * noise["score_noise_plain_500"]


def test_arrays_for_the_figures(folder):
    with np.load(folder / "covertype_draws.npz", allow_pickle=False) as held:
        assert held["moments/nuts/covertype/0"].shape == (2, 56)
        assert held["curve/ours/0"].shape[1] == 4
        assert held["curve/sgld/0"][-1, 0] == 3
        assert held["calibration/ours/0"].shape == (20, 3)


def test_a_finished_study_has_nothing_left_to_do(folder):
    before, said = (folder / "covertype.jsonl").read_bytes(), []
    run(SMOKE, folder, observe=said.append)
    assert (folder / "covertype.jsonl").read_bytes() == before
    assert said == [f"{len(MAIN)} rows are recorded, 0 to go"]


def begun(settings, folder, judged=Judge):
    """Begin a study, whose records are empty, and return what its first row is given: case, judge and store."""
    write(folder / "covertype.jsonl", Header.of_this_machine("covertype", settings.preset, 0, "study"))
    store, case = Store(folder), Case(load(settings), "covertype", 0, settings)
    return case, judged(case, store, settings), store


def test_an_interrupted_chain_goes_on_where_it_was(folder, tmp_path):
    """NUTS stopped after two of its three pieces: the third makes the same draws as a run without a stop."""
    settings, kept = SMOKE.replace(methods=("nuts",)), []

    class Stopped(Store):
        def keep_piece(self, row, arrays):
            super().keep_piece(row, arrays)
            kept.append(len(arrays["draws"]))
            if len(kept) == 2:
                raise KeyboardInterrupt

    case, judge, _ = begun(settings, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        nuts_row(Row("nuts", "covertype", 0), case, judge, Stopped(tmp_path))
    assert kept == [5, 10]
    run(settings, tmp_path)
    with np.load(tmp_path / "covertype_draws.npz") as ours, np.load(folder / "covertype_draws.npz") as whole:
        name = "moments/nuts/covertype/0"
        np.testing.assert_allclose(ours[name], whole[name], rtol=1e-4, atol=1e-4)


class Stopping(Judge):
    """Interrupted as it looks for the second time."""

    looked = 0

    def predict(self, draws):
        self.looked += 1
        if self.looked == 2:
            raise KeyboardInterrupt
        return super().predict(draws)


def test_an_interrupted_training_goes_on_where_it_was(folder, tmp_path):
    """Stopped at its second look it records nothing; the next run ends where one without a stop does."""
    settings = SMOKE.replace(methods=("sgld",), looks=3)
    case, judge, store = begun(settings, tmp_path, Stopping)
    with pytest.raises(KeyboardInterrupt):
        baseline_row(Row("sgld", "covertype", 0), case, judge, store)
    assert judge.looked == 2
    run(settings, tmp_path)
    with np.load(tmp_path / "covertype_draws.npz") as ours, np.load(folder / "covertype_draws.npz") as whole:
        name = "moments/sgld/covertype/0"
        np.testing.assert_allclose(ours[name], whole[name], rtol=1e-5)
        assert ours["curve/sgld/0"][:, 0].tolist() == [1, 2, 3]
        assert np.all(np.diff(ours["curve/sgld/0"][:, 1]) > 0)
    assert not list((tmp_path / ".covertype_samplers").glob("sgld*"))


def test_an_interrupted_fit_of_ours_is_no_result(tmp_path):
    case, judge, store = begun(SMOKE, tmp_path, Stopping)
    judge.looked = 1
    with pytest.raises(KeyboardInterrupt):
        ours_row(Row("ours", "covertype", 0), case, judge, store)


def test_half_a_row_is_cut_away_and_another_preset_refused(tmp_path):
    settings = SMOKE.replace(methods=("laplace",))
    path = run(settings, tmp_path)
    whole = path.read_text().splitlines(keepends=True)
    assert json.loads(whole[-1])["metric"] == DONE
    path.write_text("".join(whole[:4]) + whole[4][:20])
    run(settings, tmp_path)
    records = read(path)[1]
    assert finished(records) == set(rows(settings))
    assert len({(r.method, r.metric) for r in records}) == len(records)
    with pytest.raises(ValueError, match="--fresh"):
        run(settings.replace(preset="cpu"), tmp_path)


def test_the_presets_have_the_papers_sizes_and_enough_splits():
    assert PRESETS["cpu"].splits >= 5
    assert PRESETS["paper"].splits == 30
    for preset in ("cpu", "paper"):
        recipe = paper_recipe("kl", PRESETS[preset])
        assert (recipe.width, recipe.depth, recipe.activation, recipe.latent_dim) == (1024, 3, "gelu", 550)
        assert (recipe.batch_size, recipe.score_steps, recipe.num_steps) == (100, 2, 10_000)
        assert recipe.learning_rate == recipe.score_learning_rate == 2e-4
        # 550 -> 1024 -> 1024 -> 1024 -> 56 and 56 -> 1024 -> 1024 -> 1024 -> 56, counted by hand.
        assert any("2,720,824" in line and "2,214,968" in line for line in plan(PRESETS[preset]))
    found = rows(PRESETS["cpu"])
    assert len(set(found)) == len(found)
    assert {row.method for row in found} == set(METHODS)
    assert all(row.seed == 0 for row in found if row.method in (*NOISE, *SLOW))
    assert {method for stage in STAGES for method in stage} == set(METHODS)
    # What matters most is done on every split before the next stage begins.
    stages = [next(i for i, stage in enumerate(STAGES) if row.method in stage) for row in found]
    assert stages == sorted(stages)
    assert [row.method for row in found[:3]] == ["nuts", "laplace", "ours"]


@pytest.mark.parametrize("name", ["kl", "fisher", "steingan-frame", "sgld-scaled", "svgd", "dsvi-frame"])
def test_every_method_has_its_settings(name):
    how = method_of(name, PRESETS["cpu"], 464_809)
    assert how.steps >= 1000
    assert how.rows == (500 if name in ("kl", "fisher") or how.framed else 100)


@pytest.mark.parametrize("name", [method for method in METHODS if method not in WORK])
def test_every_method_can_take_a_step_and_draw(small, name):
    """Traced, not compiled: `MAIN` runs for true, and `pushforward study covertype --preset smoke` all of them."""
    how = method_of(name, PRESETS["smoke"], small.num_rows)
    peak = small.centre()
    target = InFrame(expand(small, peak), laplace.frame(peak)) if how.framed else small
    algorithm = minibatched(how.build, target, how.rows)
    key = jax.random.key(0)
    state = eqx.filter_eval_shape(algorithm.init, key)
    moved, info = eqx.filter_eval_shape(algorithm.step, key, state)
    assert eqx.tree_equal(moved, state)
    assert info
    assert all(np.shape(figure) == () for figure in info.values())
    draws = eqx.filter_eval_shape(lambda key, state: algorithm.sample(key, state, 16), key, state)
    assert draws.shape == (16, 5)


@pytest.mark.parametrize(
    "change", [{"methods": ("magic",)}, {"targets": ("mnist",)}, {"splits": 0}, {"memory_gb": -1.0}]
)
def test_senseless_settings_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        PRESETS["smoke"].replace(**change)


def test_too_little_memory_is_refused_before_anything_runs():
    with pytest.raises(ValueError, match=r"memory_gb.*at least"):
        check_memory(stand_in(2000), PRESETS["cpu"].replace(memory_gb=0.5))
    check_memory(stand_in(2000), PRESETS["cpu"])


def test_the_command_line_runs_and_refuses(tmp_path):
    invoke = CliRunner().invoke
    plain = ["study", "covertype", "--preset", "smoke", "--methods", "laplace", "--out", str(tmp_path)]
    result = invoke(app, plain)
    assert result.exit_code == 0, result.output
    result = invoke(
        app, ["study", "covertype", "--data", str(tmp_path / "none"), "--out", str(tmp_path / "x")]
    )
    assert result.exit_code == 2
    assert "pip install" in result.stderr
    assert not (tmp_path / "x").exists()
    result = invoke(app, ["study", "two-d", "--preset", "smoke", "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "makes its own" in result.stderr
    result = invoke(app, ["study", "covertype", "--preset", "paper", "--plan"])
    assert "2,720,824 parameters" in result.output


def test_the_results_become_a_report(folder, tmp_path):
    result = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "covertype.md").read_text()
    for words in ("Bars, met and missed", "Table 3", "against NUTS", "noise of minibatch", "Seconds"):
        assert words in text
    names = {"covertype_accuracy.svg", "covertype_calibration.svg", "covertype_moments.svg"}
    assert names <= {p.name for p in (tmp_path / "figures").iterdir()}
