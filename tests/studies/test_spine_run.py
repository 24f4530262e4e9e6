import numpy as np
import pytest

from reproduce.records import read
from reproduce.report.write import write_report
from reproduce.studies import spine

pytestmark = pytest.mark.quick_compilation

UNTRAINED = {"frame": "identity", "latent": "normal", "forward_weight": 0.0, "width": 2, "depth": 1,
             "score_width": 2, "score_depth": 1, "num_steps": 1}  # fmt: skip
"""Changes of a recipe: a fit that is over at once."""


def test_rows_are_recorded_once_and_told(tmp_path):
    """One row of Student's t, run, resumed and reported; untrained, so that its figures mean nothing."""
    settings = spine.PRESETS["smoke"].replace(
        methods=("kl",), targets=("student_t_5",), recipe_changes=UNTRAINED
    )
    lines: list[str] = []
    path = spine.run(settings, tmp_path / "results", observe=lines.append)
    assert lines[0] == "0 rows are recorded, 1 to go"
    assert len(lines) == 2
    header, records = read(path)
    assert header.study == "spine"
    assert {r.metric for r in records} >= {"quantile_error", "quantile_error_inner", "train_seconds"}
    assert all(r.study == "spine" and np.isfinite(r.value) for r in records)
    # All figures but the seconds of the whole row are of one recipe.
    assert len({r.recipe for r in records} - {None}) == 1
    before = path.read_bytes()
    spine.run(settings, tmp_path / "results", observe=lines.append)
    assert lines[2:] == ["1 rows are recorded, 0 to go"]
    assert path.read_bytes() == before
    written = write_report(tmp_path / "results", tmp_path / "docs")
    assert "spine_student_t.png" in {p.name for p in written}


def test_the_smoke_preset_has_a_planar_row_and_a_tail():
    assert {line.split()[1] for line in spine.plan(spine.PRESETS["smoke"])} == {"gaussian", "student_t_5"}
