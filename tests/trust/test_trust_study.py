"""The study of the check: its rows, its defects, and how they are told."""

import jax
import numpy as np
import pytest

from reproduce.records import Header, Record, read, write
from reproduce.report import write_report
from reproduce.studies import trust
from reproduce.studies.row import DONE
from reproduce.studies.trust.defects import CASES, DEFECTS, EXACT_TARGETS, sampler


def test_the_cpu_preset_is_large_enough():
    settings = trust.PRESETS["cpu"]
    assert len(EXACT_TARGETS) >= 8
    assert settings.replicates * settings.blocks >= 100
    assert {CASES[name]().dim for name in EXACT_TARGETS} >= {2, 10, 50}
    assert settings.check.num_draws == 10_000
    assert all(target in CASES for _, targets in DEFECTS.values() for target in targets)


def test_defects_are_what_they_say():
    # Errors of 40,000 draws: 0.005 for a mean, 0.0035 for an sd, each in sd; bounds at five of them.
    n, key = 40_000, jax.random.key(0)

    def of(name, target):
        return np.asarray(sampler(name, CASES[target]())(key, n), np.float64)

    truth = np.asarray(CASES["gaussian"]().sample(key, n), np.float64)
    sd = truth.std(axis=0)
    assert of("one sd 10 % too large", "gaussian").std(axis=0) / sd == pytest.approx([1.1, 1.0], abs=1e-3)
    assert of("one sd 10 % too small", "gaussian").std(axis=0) / sd == pytest.approx([0.9, 1.0], abs=1e-3)
    shift = (of("one mean 0.1 sd off", "gaussian") - truth).mean(axis=0) / sd
    assert shift == pytest.approx([0.1, 0.0], abs=0.002)
    alone = of("no correlation for 0.3", "pair_correlation_2d")
    assert abs(np.corrcoef(alone.T)[0, 1]) < 0.025
    thin = of("Gaussian tails for t5", "student_t_2d")
    assert thin.var(axis=0) == pytest.approx([5 / 3, 5 / 3], rel=0.05)
    assert np.mean(np.abs(thin) > 6) < 1e-4
    heavier = of("weights 70:30 for 50:50", "mog2")
    assert np.mean(heavier[:, 0] < 0) == pytest.approx(0.7, abs=0.012)
    missing = of("dropped mode of 10 %", "three_modes_2d")
    assert np.mean(missing[:, 1] > 4) < 1e-3
    assert np.mean(missing[:, 0] > 4) == pytest.approx(0.5, abs=0.013)
    assert len(np.unique(of("half of the draws twice", "gaussian"), axis=0)) == n // 2


def test_rows_are_recorded_once(tmp_path):
    settings = trust.PRESETS["smoke"].replace(methods=("exact",))
    told = []
    path = trust.run(settings, tmp_path, observe=told.append)
    header, records = read(path)
    assert header.study == "trust"
    assert {r.metric for r in records} >= {"not_trusted", "flagged: stein", "check_seconds", DONE}
    before = path.read_bytes()
    trust.run(settings, tmp_path, observe=told.append)
    assert path.read_bytes() == before
    assert told[0] == "0 rows are recorded, 1 to go"
    assert told[2:] == ["1 rows are recorded, 0 to go"]
    with pytest.raises(ValueError, match="preset"):
        trust.run(trust.PRESETS["cpu"], tmp_path)


def test_the_report_counts_alarms_and_power(tmp_path):
    header = Header("trust", "cpu", 0, "pushforward study trust --preset cpu", {"jax": "0.10.2"}, 1)

    def record(method, target, metric, value, seed=0, repeats=25):
        return Record("trust", "cpu", method, target, metric, value, n=10_000, repeats=repeats, seed=seed)

    records = [
        record("exact", "gaussian", "not_trusted", v, seed) for seed, v in enumerate((0.0, 0.04, 0.04, 0.0))
    ]
    records += [record("exact", "gaussian", "not_trusted_at_all", 0.0, seed) for seed in range(4)]
    records += [record("exact", "gaussian", "flagged: stein", 0.02)]
    for metric, value in (("check_seconds", 1.5), ("census_seconds", 9.0), ("first_check_seconds", 11.0)):
        records.append(record("exact", "gaussian", metric, value))
    records += [record("one mean 0.1 sd off", "gaussian", "not_trusted", 0.85, repeats=20)]
    records += [record("one mean 0.1 sd off", "gaussian", "flagged: stein", 0.85, repeats=20)]
    write(tmp_path / "results" / "trust.jsonl", header, records)
    write_report(tmp_path / "results", tmp_path / "docs")
    text = (tmp_path / "docs" / "trust.md").read_text()
    assert "| gaussian | 2.0% of 100 | 0.0% of 100 | met |" in text
    assert "| one mean 0.1 sd off: gaussian | 85.0% of 20 | missed | stein 85% |" in text
    assert "| gaussian | 1.5 | 9.0 | 20.0 | met |" in text
