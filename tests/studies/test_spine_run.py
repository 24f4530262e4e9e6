import numpy as np

from pushforward.records import read
from pushforward.report.write import write_report
from pushforward.studies import spine
from pushforward.training import teacher


def test_rows_are_recorded_once_and_told(tmp_path, monkeypatch):
    """One row of Student's t, run, resumed and reported; six steps, so that its figures mean nothing."""
    monkeypatch.setattr(teacher, "particles_for", lambda dim: 1024)
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
