import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from pushforward import Target, targets
from pushforward.cli import app
from reproduce.records import read
from reproduce.report.write import write_report
from reproduce.studies import hard
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.reference import long_nuts, reference_draws, reference_name, reference_row
from reproduce.studies.hard.run import rows
from reproduce.studies.hard.settings import CASES, NAMES, case
from reproduce.studies.hard.work import default_row, nuts_row
from reproduce.studies.row import Row, finished
from reproduce.studies.store import Store

pytestmark = pytest.mark.quick_compilation


def test_every_row_records_what_is_asked(hard_folder):
    folder, settings = hard_folder
    header, records = read(folder / "hard.jsonl")
    assert (header.study, header.preset) == ("hard", "smoke")
    assert finished(records) == set(rows(settings))
    by_row: dict[tuple, dict] = {}
    for r in records:
        by_row.setdefault((r.method, r.target), {})[r.metric] = r
    for method in ("default", "smc", "mixture", "nuts", "flow"):
        found = by_row[method, "gmm40"]
        assert {"sliced_w2", "emc", "modes_found", "mode_weight_error", "train_seconds"} <= set(found), method
        assert found["sliced_w2"].floor is not None
    ours = by_row["default", "gmm40"]
    assert {"log_z_error", "elbo_gap", "pareto_k", "draws_per_second", "outcome_good", "finite"} <= set(ours)
    assert "log_z_error" in by_row["smc", "gmm40"]
    assert {"crashed", "outcome_good", "sliced_w2"} <= set(by_row["default", "random_05"])
    assert by_row["steps", "gaussian_2d"]["step_seconds"].value > 0
    # One normal over forty modes: the metrics say so.
    assert ours["emc"].value < ours["emc"].floor


def test_a_finished_study_has_nothing_left_to_do(hard_folder):
    folder, settings = hard_folder
    before, said = (folder / "hard.jsonl").read_bytes(), []
    hard.run(settings, folder, observe=said.append)
    assert said == [f"{len(rows(settings))} rows are recorded, 0 to go"]
    assert (folder / "hard.jsonl").read_bytes() == before
    with pytest.raises(ValueError, match="--fresh"):
        hard.run(settings.replace(preset="cpu"), folder)


def test_it_becomes_a_report(hard_folder, tmp_path):
    write_report(hard_folder[0], tmp_path)
    text = (tmp_path / "hard.md").read_text()
    for words in ("Bars, met and missed", "Sliced W2 to the truth", "Entropic mode coverage", "random_05"):
        assert words in text


def test_a_floor_of_trusted_draws_tells_of_chains_that_disagree(tmp_path):
    """Draws of one pool held against themselves would score nothing, however wrong half of the chains is."""
    rng = np.random.default_rng(0)
    corners = 2.0 * np.array([[1, 1], [1, -1], [-1, -1], [-1, 1.0]])
    pool = corners + rng.normal(0, 0.1, (256, 4, 2))
    pool[1::2] *= 1.5
    settings, store = hard.PRESETS["smoke"], Store(tmp_path, "hard")
    name = reference_name("dw4", settings)
    store.keep_arrays(name, {"draws": pool.reshape(-1, 8).astype(np.float32)})
    judge = Judge("dw4", settings, store)
    found = judge.scores(Row("default", "dw4", 0), lambda key, n: judge.truth.sample(key, n), 128)
    by_name = {r.metric: r for r in found}
    assert by_name["sliced_w2"].floor > 1.0
    assert by_name["tv_distances"].floor > 0.5
    assert by_name["tv_distances"].n == 128


def test_long_nuts_is_thinned():
    settings = hard.PRESETS["smoke"].replace(reference_n=256, reference_nuts_thin=3)
    target = targets.gaussian()
    thinned = long_nuts(target, case("breast_cancer"), settings)
    dense = long_nuts(target, case("breast_cancer"), settings.replace(reference_n=768, reference_nuts_thin=1))
    assert thinned.shape == (64, 4, 2)
    np.testing.assert_array_equal(thinned, dense[2::3])


def test_rivals_without_the_fit_they_are_timed_by_are_refused(tmp_path):
    settings = hard.PRESETS["smoke"].replace(targets=("gmm40",), methods=("nuts",))
    judge = Judge("gmm40", settings, Store(tmp_path, "hard"))
    with pytest.raises(ValueError, match="default"):
        nuts_row(Row("nuts", "gmm40", 0), judge, Store(tmp_path, "hard"), lambda words: None)


def test_a_reference_is_made_once_and_kept_under_its_settings(tmp_path):
    settings, store = hard.PRESETS["smoke"], Store(tmp_path, "hard")
    found = {r.metric: r.value for r in reference_row(Row("reference", "dw4", 0), settings, store)}
    assert found["ess"] > 0
    assert found["rhat"] > 0.5
    draws = reference_draws("dw4", settings, store)["draws"]
    assert draws.shape == (settings.reference_n, 8)
    assert np.isfinite(draws).all()
    # Another call reads them, so that it takes what was written down there; other settings do not.
    name = reference_name("dw4", settings)
    store.keep_arrays(name, {**store.arrays(name), "seconds": np.array(123.0)})
    again = reference_draws("dw4", settings, store)
    assert again["seconds"] == 123.0
    np.testing.assert_array_equal(again["draws"], draws)
    assert reference_name("dw4", settings.replace(reference_thin=2)) != name
    assert store.arrays(reference_name("dw4", settings.replace(reference_thin=2))) is None
    judge = Judge("dw4", settings, store)
    scores = {
        r.metric: r
        for r in judge.scores(Row("smc", "dw4", 0), lambda key, n: judge.truth.sample(key, n), 256)
    }
    assert set(scores) == {"sliced_w2", "tv_distances", "energy_error"}
    assert scores["sliced_w2"].value < 3 * scores["sliced_w2"].floor


def test_a_crash_is_a_record(tmp_path):
    def broken(x):
        raise FloatingPointError("made to fail")

    judge, said = Judge("random_05", hard.PRESETS["smoke"], Store(tmp_path, "hard")), []
    judge.target = Target.from_log_density(broken, dim=2)
    found = default_row(Row("default", "random_05", 0), judge, Store(tmp_path, "hard"), said.append)
    assert {r.metric: r.value for r in found}["crashed"] == 1
    assert "made to fail" in said[0]


def test_rows_are_unique_and_in_an_order_that_works():
    for settings in hard.PRESETS.values():
        found = rows(settings)
        assert len(set(found)) == len(found)
        for row in found:
            if row.method in ("nuts", "flow"):
                assert found.index(row) > found.index(row._replace(method="default"))
    everything = rows(hard.PRESETS["cpu"])
    assert sum(row.target.startswith("random_") for row in everything) == 20
    assert {row.seed for row in everything} == {0, 1, 2}
    assert all(Row("reference", name, 0) in everything for name in CASES if case(name).truth != "exact draws")


def test_every_case_can_be_built():
    for name in NAMES:
        target = case(name).build()
        out = jax.eval_shape(target.log_density, jax.ShapeDtypeStruct((target.dim,), np.float32))
        assert out.shape == ()
    assert case("gaussian_1000").build().dim == 1000
    assert case("gmm40_50").build().dim == 50
    with pytest.raises(ValueError, match="gmm40"):
        case("gmm4")


@pytest.mark.parametrize(
    "change",
    [
        {"targets": ("nowhere",)},
        {"methods": ("magic",)},
        {"seeds": 0},
        {"reference_n": 10},
        {"reference_chains": 3},
    ],
)
def test_senseless_settings_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        hard.PRESETS["smoke"].replace(**change)


def test_the_plan_is_printed():
    result = CliRunner().invoke(app, ["study", "hard", "--preset", "cpu", "--plan"])
    assert result.exit_code == 0, result.output
    assert "lj13: held against replica exchange" in result.output
