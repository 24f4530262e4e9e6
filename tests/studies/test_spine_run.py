import numpy as np

from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.sampler import Sampler
from pushforward.training import Fit, Outcome
from reproduce.records import read
from reproduce.report.write import write_report
from reproduce.studies import spine
from reproduce.studies.spine import student_t


def untrained(key, target, *, settings):
    """A fit that is over at once: normal draws."""
    sampler = Sampler(Normal(1), mlp(key, 1, 1, width=2, skip=True), Frame.identity(1))
    return Fit(sampler, Outcome.FINISHED, settings, [{"phase": "train", "seconds": 0.1}], [])


def test_rows_are_recorded_once_and_told(tmp_path, monkeypatch):
    """One row of Student's t, run, resumed and reported; untrained, so that its figures mean nothing."""
    monkeypatch.setattr(student_t, "fit_to_the_end", untrained)
    settings = spine.PRESETS["smoke"].replace(methods=("kl",), targets=("student_t_5",))
    lines: list[str] = []
    path = spine.run(settings, tmp_path / "results", observe=lines.append)
    assert len(lines) == 1
    header, records = read(path)
    assert header.study == "spine"
    assert {r.metric for r in records} >= {"quantile_error", "quantile_error_inner", "train_seconds"}
    assert all(r.study == "spine" and np.isfinite(r.value) for r in records)
    before = path.read_bytes()
    spine.run(settings, tmp_path / "results", observe=lines.append)
    assert len(lines) == 1
    assert path.read_bytes() == before
    written = write_report(tmp_path / "results", tmp_path / "docs")
    assert "spine_student_t.png" in {p.name for p in written}


def test_the_smoke_preset_has_a_planar_row_and_a_tail():
    assert {line.split()[1] for line in spine.plan(spine.PRESETS["smoke"])} == {"gaussian", "student_t_5"}
