import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.targets import get
from reproduce.records import read
from reproduce.report.write import write_report
from reproduce.studies import theory
from reproduce.studies.theory import Bend, divergence_gradients, estimate, flat, quadrature

pytestmark = pytest.mark.quick_compilation

UNTRAINED = {"frame": "identity", "latent": "normal", "forward_weight": 0.0, "width": 2, "depth": 1,
             "score_width": 2, "score_depth": 1, "num_steps": 1}  # fmt: skip
"""Changes of a recipe: a fit that is over at once."""


class Standard(theory.Target):
    dim: int = 2
    name: str = "standard"

    def log_density(self, x):
        return -0.5 * x @ x


def test_both_sides_are_those_of_a_normal_law():
    """Of N(m, t^2) against N(0, 1): KL's slopes are m and t^2 - 1, Fisher's m and t^2 - 1/t^2, in log t."""
    m, t = jnp.array([0.3, -0.4]), jnp.array([1.2, 0.8])
    straight = Bend(m, jnp.log(t), jnp.zeros(()))
    found = divergence_gradients(straight, Standard(), 0.3, quadrature(32))
    assert jnp.allclose(found["kl"].shift, m, atol=1e-4)
    assert jnp.allclose(found["kl"].log_scale, t**2 - 1, atol=1e-4)
    assert jnp.allclose(found["fisher"].shift, m, atol=1e-4)
    assert jnp.allclose(found["fisher"].log_scale, t**2 - t**-2, atol=1e-4)


def test_the_density_is_that_of_the_map():
    g, z = theory.sampler(), jnp.array([0.7, -1.1])
    _, log_det = jnp.linalg.slogdet(jax.jacobian(g)(z))
    assert g.log_density(g(z)) == pytest.approx(-0.5 * float(z @ z) - float(log_det), abs=1e-5)


@pytest.mark.parametrize("method", theory.IDENTITIES)
def test_an_identity_holds_on_draws_and_the_first_term_alone_does_not(method):
    target, z = get("gaussian"), jax.random.normal(jax.random.key(0), (40_000, 2))
    truth = flat(divergence_gradients(theory.sampler(), target, 0.3, quadrature(32))[method])
    error = np.linalg.norm(flat(estimate(method, target, 0.3, z)) - truth) / np.linalg.norm(truth)
    assert error > 0.5 if method == "fisher-first-term" else error < 0.05


def test_rows_are_recorded_once_and_told(tmp_path):
    settings = theory.PRESETS["smoke"].replace(methods=("kl", "fisher"), recipe_changes=UNTRAINED)
    lines: list[str] = []
    path = theory.run(settings, tmp_path / "results", observe=lines.append)
    assert lines[0] == "0 rows are recorded, 4 to go"
    _, records = read(path)
    assert {r.metric for r in records} >= {"error_50", "error_200", "bias", "cosine", "quantile_error"}
    assert all(np.isfinite(r.value) for r in records)
    before = path.read_bytes()
    theory.run(settings, tmp_path / "results", observe=lines.append)
    assert lines[-1] == "4 rows are recorded, 0 to go"
    assert path.read_bytes() == before
    written = {p.name for p in write_report(tmp_path / "results", tmp_path / "docs")}
    assert {"theory_errors.svg", "theory_student_t.png", "theory.md", "paper.md"} <= written
    assert "identity within" in (tmp_path / "docs" / "paper.md").read_text()


def test_rows_may_be_run_again_without_the_others(tmp_path):
    settings = theory.PRESETS["smoke"].replace(methods=("kl", "fisher"), targets=("gaussian",))
    path = theory.run(settings, tmp_path)
    others = [line for line in path.read_text().splitlines() if '"method": "fisher"' in line]
    lines: list[str] = []
    theory.run(settings.replace(methods=("kl",)), tmp_path, again=True, observe=lines.append)
    assert lines[0] == "1 rows are recorded, 1 to go"
    text = path.read_text().splitlines()
    assert [line for line in text if '"method": "fisher"' in line] == others
    assert sum('"method": "kl"' in line for line in text) == len(others)
