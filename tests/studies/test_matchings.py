import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.targets import gaussian
from reproduce.records import read
from reproduce.report.cells import Cells
from reproduce.report.matchings import answer, middle
from reproduce.report.write import write_report
from reproduce.studies import matchings
from reproduce.studies.matchings import NoisyKL, rows
from reproduce.studies.noise_levels import MultiNoise

pytestmark = pytest.mark.quick_compilation


def test_the_score_of_a_target_in_noise_is_that_of_the_wider_normal():
    target = gaussian(2)
    assert target.covariance is not None
    y, sigma = jnp.array([0.5, 1.5]), jnp.asarray(0.7)
    seen = NoisyKL(MultiNoise(0.1, 3.0), 4000)._score(target, jax.random.key(0), y, sigma)
    truth = -jnp.linalg.solve(target.covariance + sigma**2 * jnp.eye(2), y - target.mean)
    assert jnp.allclose(seen, truth, atol=0.1)


def test_every_matching_trains_for_the_same_seconds_and_is_told(tmp_path):
    settings = matchings.PRESETS["smoke"].replace(methods=("exact", "multi-noise", "none"))
    assert {row.method for row in rows(matchings.PRESETS["cpu"])} == set(matchings.CHANGES)
    path = matchings.run(settings, tmp_path / "results")
    _, records = read(path)
    found = {(r.method, r.metric): r.value for r in records}
    for method in settings.methods:
        assert found[method, "iterations"] >= 1
        assert found[method, "iterations"] * found[method, "step_seconds"] <= settings.seconds * 1.01 or (
            found[method, "iterations"] == 1
        )
        assert np.isfinite(found[method, "sliced_w2"])
    write_report(tmp_path / "results", tmp_path / "docs")
    text = (tmp_path / "docs" / "matchings.md").read_text()
    assert answer(Cells(records)) in text
    assert "Answer: of the estimates" in text
    assert middle(Cells(records), "iterations", "exact") == pytest.approx(found["exact", "iterations"])


def test_noise_levels_are_stratified_and_log_uniform():
    matching, n = MultiNoise(0.1, 10.0), 64
    levels = np.asarray(matching.levels(jax.random.key(1), n))
    place = np.sort(np.log(levels / 0.1) / np.log(100.0) * n)
    assert np.all((place >= np.arange(n) - 1e-3) & (place <= np.arange(1, n + 1) + 1e-3))
    assert not np.all(np.diff(levels) > 0)  # in random order
