"""The smoke preset on made images: every stage once, resumption after a kill, refusals, the report."""

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from pushforward.cli import app
from pushforward.files import BadFileError
from reproduce.records import read
from reproduce.report.write import write_report
from reproduce.studies.ebm import PRESETS, plan, run
from reproduce.studies.ebm.judge import Judge
from reproduce.studies.ebm.keeping import Store, train
from reproduce.studies.ebm.plan import made_images
from reproduce.studies.ebm.work import Work, recorded_rows

SMOKE = PRESETS["smoke"].replace(samplers=("kl",))
"""The other samplers differ in the objective alone, and take as long to compile."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    run(SMOKE, folder, command="pushforward study ebm --preset smoke")
    return folder


def test_every_row_records_what_the_issue_asks_for(folder):
    header, records = read(folder / "ebm.jsonl")
    assert (header.study, header.preset) == ("ebm", "smoke")
    found = {(r.method, r.metric): r for r in records}
    for method in ("langevin-2", "langevin-4", "kl"):
        for metric in ("fid", "kid"):
            assert found[method, metric].floor is not None
        shares = [
            r.value for (m, metric), r in found.items() if m == method and metric.startswith("class_share_")
        ]
        assert sum(shares) == pytest.approx(1.0)
        assert {"nfe", "class_entropy", "neighbour_distance", "seconds_per_image"} <= {
            metric for m, metric in found if m == method
        }
    assert found["langevin-4", "seconds_per_image"].value > found["kl", "seconds_per_image"].value
    assert found["kl", "fid_as_rows"].n == found["langevin-2", "fid"].n == SMOKE.row_images
    # Judged on 32 images, which are two sets of 16.
    assert found["kl", "fid_as_rows"].repeats == SMOKE.judge_sets == 2
    assert found["kl", "fid_as_rows"].spread > 0
    assert found["langevin-2", "fid_as_rows"].repeats == SMOKE.row_sets == 2
    assert found["kl-sobol", "fid_as_rows"].repeats == 2
    # The row that came out best is judged once more, on sets that did not make it the best.
    best = min(("langevin-2", "langevin-4"), key=lambda row: found[row, "fid_as_rows"].value)
    again = [(method, r.repeats) for (method, metric), r in found.items() if metric == "fid_fresh"]
    assert again == [(best, SMOKE.fresh_sets)]
    assert found[best, "fid_fresh"].value != found[best, "fid_as_rows"].value
    assert found["energy", "flops"].value > found["kl", "flops"].value / 10
    assert found["classifier", "accuracy"].n == 32


def test_a_finished_run_is_not_run_again(folder, monkeypatch):
    words = []
    before = (folder / ".ebm_samplers" / "energy.pf").read_bytes()
    run(SMOKE.replace(stages=("classifier", "energy")), folder, observe=words.append)
    assert (folder / ".ebm_samplers" / "energy.pf").read_bytes() == before
    assert any("energy: 4 of 4 steps are kept" in line for line in words)


def test_rows_that_are_recorded_are_not_drawn_again(folder, tmp_path):
    held = read(folder / "ebm.jsonl")[1]
    rows = recorded_rows(SMOKE, held)
    assert set(rows) == {2, 4}
    # Times are taken anew with every sampler, and fresh sets are of the row that is best.
    metrics = {record.metric for row in rows.values() for record in row}
    assert {"fid", "kid_as_rows", "class_share_0"} <= metrics
    assert not {"seconds_per_image", "fid_fresh"} & metrics
    assert recorded_rows(SMOKE.replace(row_sets=3), held) == {}
    work = Work(SMOKE, made_images(160), Store(tmp_path), lambda words: None, held)
    assert work.langevin() == {}
    # A judge that knows nothing is asked for nothing, and nothing is drawn.
    found = [record for row in rows.values() for record in row]
    again = work._best_row_again(object.__new__(Judge), found)
    assert [r.metric for r in again] == ["fid_fresh", "kid_fresh"]
    assert all(r in held for r in again)


def test_a_report_is_written(folder, tmp_path):
    names = {path.name for path in write_report(folder, tmp_path)}
    assert {"ebm.md", "ebm_grids.png", "ebm_film.png", "ebm_speed.svg", "report.html"} <= names
    text = (tmp_path / "ebm.md").read_text()
    assert "Bars, met and missed" in text
    assert "langevin-4" in text


def test_checkpoints_of_another_architecture_are_refused(folder):
    with pytest.raises(ValueError, match=r"other settings: `energy_widths` was \[4\].*--fresh"):
        run(SMOKE.replace(energy_widths=(8,)), folder)


def counting(key, state):
    """A step whose result depends on every key before it."""
    value = state["x"] * 0.5 + jax.random.normal(key, (3,))
    return {"x": value}, {"size": abs(value).sum()}


def test_a_killed_stage_goes_on_to_the_same_bits(tmp_path):
    import jax.numpy as jnp

    def go(folder, step, num_steps=9):
        return train(
            "part", jax.random.key(0), step, {"x": jnp.zeros(3)}, num_steps=num_steps, folder=folder, every=0.0,
            observe=lambda words: None,
        )  # fmt: skip

    whole = go(tmp_path / "whole", counting)
    calls = 0

    def killed(key, state):
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return counting(key, state)

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", killed)
    calls = 10
    again = go(tmp_path / "cut", killed)
    assert calls == 15
    np.testing.assert_array_equal(again["x"], whole["x"])
    (tmp_path / "cut" / "part.pf").write_bytes(b"torn")
    with pytest.raises(BadFileError, match=r"no checkpoint of the stage 'part'.*--fresh"):
        go(tmp_path / "cut", counting)
    other = tmp_path / "other"
    go(other, counting)
    with pytest.raises(BadFileError, match=r"another recipe.*`lift` was None and is 2.0"):
        train(
            "part", jax.random.key(0), counting, {"x": jnp.zeros(3)}, num_steps=9, folder=other, every=0.0,
            observe=lambda words: None, recipe={"lift": 2.0},
        )  # fmt: skip
    with pytest.raises(BadFileError, match="another architecture"):
        train(
            "part", jax.random.key(0), counting, {"x": jnp.zeros(4)}, num_steps=9, folder=other, every=0.0,
            observe=lambda words: None,
        )  # fmt: skip


def test_the_plan_names_the_papers_sizes():
    lines = "\n".join(plan(PRESETS["paper"]))
    assert "energy: 9,060,483 parameters" in lines
    assert "sampler: 12,592,385 parameters" in lines


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "nowhere"], "train-images-idx3-ubyte"),
        (["--stage", "sampling"], "sampler"),
        (["--methods", "kl"], "--stage"),
    ],
)
def test_requests_that_make_no_sense(arguments, words, tmp_path):
    result = CliRunner().invoke(app, ["study", "ebm", "--out", str(tmp_path), *arguments])
    assert result.exit_code == 2
    assert words in result.output.replace("\n", " ")


@pytest.mark.parametrize(
    "change",
    [
        {"sigma_min": 3.0},
        {"sampler_sigma_max": 4.0},
        {"stages": ("all",)},
        {"energy": "deep"},
        {"evaluations": (1,)},
        {"latent": 1},
        {"kinds": 100_000},
        {"generator": "paper"},
    ],
)
def test_settings_are_checked_when_built(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        PRESETS["cpu"].replace(**change)
