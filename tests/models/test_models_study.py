"""The study of models that users bring: its cases, its arithmetic, how it resumes and how it is told."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal

from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import MLP
from pushforward.objectives.base import Objective, Wants
from pushforward.sampler import Sampler
from pushforward.trust import check
from pushforward.trust.line import BAD, CAUTION, VERDICTS
from reproduce.records import Header, Record, read, write
from reproduce.report import write_report
from reproduce.studies import models
from reproduce.studies.models.cases import CASES
from reproduce.studies.models.data import NUM_COUNTIES, NUM_HOUSES, radon
from reproduce.studies.models.reference import COST, DIVERGENT, Truth, chains_name, truth_of
from reproduce.studies.models.run import rows
from reproduce.studies.row import Row, finished
from reproduce.studies.store import Store

NAME = "eight_schools_non_centred"
DIMS = {
    "eight_schools_centred": 10, NAME: 10, "radon": NUM_COUNTIES + 4, "gaussian_process": 3,
    "ordered_mixture": 5,
}  # fmt: skip
ABOUT = {
    "outcome": "FINISHED",
    "phases": [{"phase": "teacher", "seconds": 0.1}],
    "metrics": {"efficiency": 0.5},
}


def stand_in(target):
    """The standard normal as a sampler of anything."""
    net = MLP((jnp.eye(target.dim),), (jnp.zeros(target.dim),), "silu", skip=False)
    frame = Frame.identity(target.dim)
    return Sampler(Normal(target.dim), net, frame, json.dumps(ABOUT), target.parameters)


def made_chains():
    """What NUTS would have found, were the truth a standard normal but for a `mu` of mean 1 and sd 2."""
    rng = np.random.default_rng(0)
    mu, log_tau = 1.0 + 2.0 * rng.normal(size=(2, 5000)), rng.normal(size=(2, 5000))
    z = rng.normal(size=(2, 5000, 8))
    theta = mu[..., None] + np.exp(log_tau)[..., None] * z
    found = {"mu": mu, "tau": np.exp(log_tau), "z": z, "theta": theta}
    return {**found, COST: np.array(3.0), DIVERGENT: np.array(7)}


SETTINGS = models.PRESETS["smoke"].replace(methods=("nuts", "plain", "numpyro"), num_draws=40_000)


@pytest.fixture
def begun(tmp_path):
    """A folder of a run that was stopped: chains and samplers are kept, and no row is recorded."""
    command, recipe = "pushforward study models", SETTINGS.how.recipe
    write(tmp_path / "models.jsonl", Header.of_this_machine("models", "smoke", 0, command, recipe))
    store = Store(tmp_path, "models")
    store.keep_arrays(chains_name(NAME, SETTINGS), made_chains())
    for front in ("plain", "numpyro"):
        told = {"study_figures": {"train_seconds": 1.0, "train_processor_seconds": 1.0}}
        store.keep(Row(front, NAME, 0), SETTINGS.how, stand_in(CASES[NAME].target(front)), told)
    return tmp_path


def test_every_case_is_a_target():
    for name, case in CASES.items():
        # PyMC's door is tried where its model is held against the others, in `test_eight_schools`.
        for front in [front for front in case.fronts if front != "pymc"]:
            target = case.target(front)
            assert target.dim == DIMS[name], (name, front)
            out = jax.eval_shape(target.log_density, jax.ShapeDtypeStruct((target.dim,), np.float32))
            assert out.shape == ()
    assert CASES[NAME].fronts == ("numpyro", "pymc", "plain")


def test_the_radon_like_data_have_the_shape_of_the_study():
    made = radon()
    sizes = np.bincount(made.county, minlength=NUM_COUNTIES)
    assert (len(sizes), sizes.sum(), len(made.log_radon)) == (NUM_COUNTIES, NUM_HOUSES, NUM_HOUSES)
    assert sizes.min() == 1
    assert sizes.max() > 50
    assert set(made.floor) == {0.0, 1.0}


def test_rows_begin_with_the_references_and_are_unique():
    found = rows(models.PRESETS["cpu"])
    assert len(set(found)) == len(found)
    assert [row.method for row in found[: len(CASES)]] == ["nuts"] * len(CASES)
    assert {row.seed for row in found} == {0, 1}
    assert sum(row.method == "pymc" for row in found) == 1


def test_errors_are_measured_in_the_truths_units_and_rows_are_recorded_once(begun):
    told = []
    path = models.run(SETTINGS, begun, observe=told.append)
    header, records = read(path)
    assert (header.study, header.preset) == ("models", "smoke")
    assert finished(records) == set(rows(SETTINGS))
    by_row: dict[Row, dict[str, Record]] = {}
    for r in records:
        by_row.setdefault(Row(r.method, r.target, r.seed or 0), {})[r.metric] = r
    nuts = by_row[Row("nuts", NAME, 0)]
    assert nuts["divergent"].value == pytest.approx(7 / 10_000)
    assert nuts["ess"].value > 5000
    for front in ("plain", "numpyro"):
        ours = by_row[Row(front, NAME, 0)]
        # N(0, 1) against N(1, 4), known to 0.01 sd.
        assert ours["mean_error: mu"].value == pytest.approx(-0.5, abs=0.05)
        assert ours["sd_ratio: mu"].value == pytest.approx(0.5, abs=0.03)
        assert ours["mean_error: z[3]"].value == pytest.approx(0.0, abs=0.05)
        assert ours["mean_error_max"].value >= abs(ours["mean_error: mu"].value)
        assert 0.005 < (ours["mean_error_max"].floor or 0.0) < 0.05
        # What the check says is recorded: its verdict by rank, and the lines it flags.
        row, target = Row(front, NAME, 0), CASES[NAME].target(front)
        report = check(row.key("check"), stand_in(target), target, settings=SETTINGS.check)
        assert ours["verdict"].value == VERDICTS.index(report.verdict) > 0
        flags = {line.name: level for line, level in zip(report.lines, report.levels, strict=True)}
        assert {name: ours[f"flagged: {name}"].value for name in flags} == {
            name: float(level in (CAUTION, BAD)) for name, level in flags.items()
        }
        assert 0 < sum(level in (CAUTION, BAD) for level in flags.values()) < len(flags)
        assert ours["verdict"].recipe == SETTINGS.how.recipe.digest() == header.recipe
        # What a model derives is judged; a plain function derives nothing.
        assert ("mean_error: theta[0]" in ours) == (front == "numpyro")
    before = path.read_bytes()
    models.run(SETTINGS, begun, observe=told.append)
    assert told[-1] == "3 rows are recorded, 0 to go"
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="--fresh"):
        models.run(models.PRESETS["cpu"], begun)


class Broken(Objective):
    """An objective that raises."""

    wants = Wants(fitted="nothing")

    def surrogate(self, key, network, z, view):
        raise FloatingPointError("made to fail")


def test_a_crash_is_a_record_and_a_torn_line_is_cut(tmp_path):
    changes = {"frame": "identity", "latent": "normal", "forward_weight": 0.0, "objective": Broken()}
    settings, said = SETTINGS.replace(methods=("plain",), recipe_changes=changes), []
    path = models.run(settings, tmp_path, observe=said.append)
    whole = path.read_text()
    assert any("made to fail" in words for words in said)
    assert {r.metric: r.value for r in read(path)[1]}["crashed"] == 1
    path.write_text(whole[: whole.rindex("row_seconds")])
    models.run(settings, tmp_path)
    assert finished(read(path)[1]) == set(rows(settings))


def test_the_truth_knows_its_own_errors():
    """Chains `x_t = r x_(t-1) + noise` of 4 x 20,000 are worth `(1 - r) / (1 + r)` of it for the mean, and
    `(1 - r^2) / (1 + r^2)` for the spread; estimates of both are good to some 5 %."""
    r, rng = 0.5, np.random.default_rng(0)
    noise = rng.normal(size=(4, 20_000)) * np.sqrt(1 - r**2)
    noise[:, 0] = rng.normal(size=4)
    chains = 3.0 + 2.0 * np.asarray(scipy.signal.lfilter([1.0], [1.0, -r], noise, axis=1))
    found: Truth = truth_of(chains)
    n = chains.size
    assert found.mean_error == pytest.approx(np.sqrt((1 + r) / (1 - r) / n), rel=0.1)
    assert found.sd_error == pytest.approx(np.sqrt((1 + r**2) / (1 - r**2) / (2 * n)), rel=0.1)
    assert abs(found.mean - 3.0) < 5 * 2.0 * found.mean_error
    assert found.sd == pytest.approx(2.0, rel=5 * found.sd_error)
    assert found.ess > 0.25 * n
    assert found.rhat < 1.01
    stuck = chains + np.array([[0.0], [0.0], [0.0], [5.0]])
    assert truth_of(stuck).rhat > 1.1


def test_the_report_says_what_was_met(tmp_path):
    header = Header("models", "cpu", 0, "pushforward study models --preset cpu", {"jax": "0.10.2"}, 1)

    def fit(model, mean, sd, verdict, seed=0):
        figures = {"crashed": 0, "dim": 10, "mean_error_max": mean, "sd_error_max": sd, "verdict": verdict,
                   "flagged: stein": float(verdict > 0), "train_seconds": 40.0, "check_seconds": 9.0,
                   "mean_error: mu": -mean, "sd_ratio: mu": 1 + sd}  # fmt: skip
        return [Record("models", "cpu", "numpyro", model, m, v, seed=seed) for m, v in figures.items()]

    records = [*fit("good", 0.05, 0.04, 0), *fit("flagged", 0.05, 0.3, 2), *fit("bad", 0.2, 0.02, 0)]
    records.append(Record("models", "cpu", "numpyro", "gone", "crashed", 1, seed=0))
    for metric, value in (("rhat", 1.001), ("ess", 6000), ("divergent", 0), ("reference_seconds", 50)):
        records.append(Record("models", "cpu", "nuts", "good", metric, value, n=10_000, seed=0))
    write(tmp_path / "results" / "models.jsonl", header, records)
    write_report(tmp_path / "results", tmp_path / "docs")
    text = (tmp_path / "docs" / "models.md").read_text()
    assert "| good, numpyro, seed 0 | 10 | 0.0500 | 0.0400 | trust | met |" in text
    assert "| flagged, numpyro, seed 0 | 10 | 0.0500 | 0.300 | do not trust (stein) | met (flagged) |" in text
    assert "| bad, numpyro, seed 0 | 10 | 0.200 | 0.0200 | trust | missed |" in text
    assert "| gone, numpyro, seed 0 | - | - | - | - | missed (crashed) |" in text
    assert "| good: mu | 1 | -0.0500 | 1.040 to 1.040 |" in text
    assert "| good | 10,000 | 1.0010 | 6,000 | 0 | 50.0 |" in text


@pytest.mark.parametrize(
    "change", [{"targets": ("nine_schools",)}, {"methods": ("stan",)}, {"seeds": 0}, {"chains": 1}]
)
def test_senseless_settings_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        models.PRESETS["smoke"].replace(**change)
