import json
import math

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from pushforward import fit
from pushforward.cli import app
from pushforward.targets import gaussian
from reproduce.records import read
from reproduce.studies.row import DONE, Row, finished
from reproduce.studies.two_d import PRESETS, run
from reproduce.studies.two_d.recipes import recipe
from reproduce.studies.two_d.run import TIMED, rows
from reproduce.studies.two_d.watch import Store, watch

pytestmark = pytest.mark.quick_compilation

CHEAP = PRESETS["smoke"].replace(methods=("exact", "ld", "hmc", "svgd"))


def records_of(folder):
    return read(folder / "two_d.jsonl")


def test_the_smoke_study_records_every_metric(smoke_folder):
    header, records = records_of(smoke_folder)
    assert (header.study, header.preset) == ("two_d", "smoke")
    by_method: dict[str, set] = {}
    for record in records:
        by_method.setdefault(record.method, set()).add(record.metric)
    judged = {"ksd_imq_v", "ksd_imq_u", "ksd_rbf_u", "sliced_w2", "mmd"}
    for method in ("default", "kl", "smc", "mixture", "exact", "ld", "svgd", "flow"):
        assert judged <= by_method[method], method
    assert {"ksd_imq_v_best", "train_seconds", "parameters"} <= by_method["kl"]
    assert {"rmse_mean", "rmse_second"} <= by_method["default-sobol"]
    assert {"ksd_imq_v", "sliced_w2"} <= by_method["default-thin"]
    for method in ("kl", "default", "ld", "hmc", "svgd", "flow", "default-thin"):
        assert {"seconds_per_1k_draws", "ratio_to_kl"} <= by_method[method]


# Here and not with the report's other tests: files may run in different processes, each with its own fixture.
def test_the_smoke_results_become_a_report(smoke_folder, tmp_path):
    result = CliRunner().invoke(app, ["report", str(smoke_folder), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "two_d.md").read_text()
    for words in ("Bars, met and missed", "Table 1", "Sliced W2", "Table 2", "Better than independent"):
        assert words in text
    assert "pushforward study two-d --preset smoke" in text
    assert (tmp_path / "report.html").stat().st_size > 50_000
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {
        *("two_d_draws.png", "two_d_ksd_time.svg", "two_d_w2_time.svg", "two_d_speed.svg")
    }


def test_every_figure_says_how_it_was_made(smoke_folder):
    for record in records_of(smoke_folder)[1]:
        assert math.isfinite(record.value) or record.metric == "break_even"
        if record.metric.startswith(("ksd", "sliced", "mmd", "rmse")):
            assert record.floor is not None
            assert record.spread is not None
            assert record.n is not None
            assert record.repeats is not None
            assert record.repeats >= 2
        assert record.metric in TIMED or record.seed is not None


def test_figures_of_fits_name_their_recipe(smoke_folder):
    header, records = records_of(smoke_folder)
    assert header.recipe == recipe("default", PRESETS["smoke"]).recipe.digest()
    for record in records:
        if (
            record.metric in TIMED
            or record.metric == DONE
            or record.method in ("exact", "ld", "svgd", "flow")
        ):
            assert record.recipe is None
        else:
            name = "kl" if record.method == "kl" else "default"
            assert record.recipe == recipe(name, PRESETS["smoke"]).recipe.digest(), record


def test_the_arrays_for_the_figures_are_small_and_plain(smoke_folder):
    path = smoke_folder / "two_d_draws.npz"
    with np.load(path, allow_pickle=False) as held:
        assert held["draws/default/gaussian"].dtype == np.float32
        assert held["draws/default/gaussian"].shape == (2000, 2)
        assert held["density/gaussian"].dtype == np.uint8
        assert held["curve/kl/gaussian"].shape[1] == 4
        seconds = held["curve/kl/gaussian"][:, 0]
        assert np.all(np.diff(seconds) > 0)
    # Six targets of this size must stay below 1.5 MB.
    assert path.stat().st_size < 250_000


def test_a_finished_study_has_nothing_left_to_do(smoke_folder):
    before, said = (smoke_folder / "two_d.jsonl").read_bytes(), []
    run(CHEAP.replace(methods=("exact", "ld", "svgd")), smoke_folder, observe=said.append)
    assert (smoke_folder / "two_d.jsonl").read_bytes() == before
    assert said[0].endswith("0 to go")


def test_an_interrupted_study_does_only_the_rest(tmp_path):
    def stop_after_two(words):
        if words.startswith("2/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(CHEAP, tmp_path, observe=stop_after_two)
    first = (tmp_path / "two_d.jsonl").read_text()
    assert len(finished(read(tmp_path / "two_d.jsonl")[1])) == 2
    said = []
    run(CHEAP, tmp_path, observe=said.append)
    assert said[0] == "2 rows are recorded, 2 to go"
    records = records_of(tmp_path)[1]
    assert (tmp_path / "two_d.jsonl").read_text().startswith(first)
    assert len({(r.method, r.target, r.seed, r.metric) for r in records}) == len(records)
    assert finished(records) == set(rows(CHEAP))


def test_half_a_row_and_half_a_line_are_cut_away(tmp_path):
    path = run(CHEAP, tmp_path)
    whole = path.read_text()
    lines = whole.splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines[:-1]) if json.loads(line).get("metric") == DONE)
    # A kill in the middle of the last row's write: two of its lines, and part of a third.
    path.write_text("".join(lines[: last + 3]) + lines[last + 3][:20])
    run(CHEAP, tmp_path)
    figures = [line for line in path.read_text().splitlines() if DONE not in line]
    assert figures == [line for line in whole.splitlines() if DONE not in line]


def test_another_preset_in_the_same_folder_is_refused(tmp_path):
    run(CHEAP.replace(methods=("exact",)), tmp_path)
    with pytest.raises(ValueError, match="--fresh"):
        run(CHEAP.replace(preset="cpu"), tmp_path)
    run(CHEAP.replace(preset="cpu", methods=("exact",)), tmp_path, fresh=True)
    assert records_of(tmp_path)[0].preset == "cpu"


def test_watching_changes_nothing():
    # The study trains KL and Fisher while it looks; the sampler must be the one that `fit` makes.
    how = recipe("kl", PRESETS["smoke"])
    watched = watch("gaussian", 5, how, PRESETS["smoke"]).sampler
    plain = fit(jax.random.key(5), gaussian(), method=how, progress=False).sampler
    draws = [sampler.sample(jax.random.key(0), 100) for sampler in (watched, plain)]
    np.testing.assert_allclose(*draws, rtol=1e-5, atol=1e-5)


def test_the_papers_sizes_take_a_few_steps(tmp_path):
    settings = PRESETS["smoke"].replace(preset="paper", methods=("kl",), max_steps=1)
    # The paper's batch of 5,000 on a 400-wide net: seconds a step on two cores.
    run(settings, tmp_path)
    sizes = [r.value for r in records_of(tmp_path)[1] if r.metric == "parameters"]
    assert sizes == [322_802]


def test_a_kept_sampler_serves_only_the_recipe_that_trained_it(smoke_folder):
    store, row = Store(smoke_folder), Row("kl", "gaussian", 0)
    how = recipe("kl", PRESETS["smoke"])
    assert store.sampler(row, how) is not None
    assert store.sampler(row, how.replace(width=65)) is None
    assert store.sampler(Row("kl", "gaussian", 7), how) is None
