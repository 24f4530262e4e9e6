import dataclasses

import pytest

from pushforward import methods
from reproduce.studies.two_d import PRESETS, plan
from reproduce.studies.two_d.recipes import OURS, PAPERS, recipe
from reproduce.studies.two_d.run import parameters, rows
from reproduce.studies.two_d.settings import FAMILY, METHODS, SIX


def test_the_paper_preset_has_the_papers_sizes():
    settings = PRESETS["paper"]
    for method in ("kl", "fisher", "ksd-ns", "steingan"):
        found = recipe(method, settings).recipe.training
        assert (found.width, found.depth, found.activation, found.batch_size) == (400, 3, "elu", 5000)
        assert (found.learning_rate, found.num_steps, found.score_steps) == (2e-5, 10_000, 5)
        assert (found.frame, found.latent) == ("identity", "normal")
    assert settings.checkpoints * 200 == recipe("kl", settings).recipe.training.num_steps
    # 2 -> 400 -> 400 -> 400 -> 2, counted by hand.
    assert parameters("kl", settings) == (322_802, 322_802)
    assert parameters("flow", settings)[0] == 243_606
    assert any("322,802" in line for line in plan(settings))


def test_the_default_row_is_what_fit_does():
    assert OURS["default"] == PAPERS["default"] == methods.METHODS["default"]
    assert OURS["kl"] == methods.METHODS["kl"]
    assert OURS["fisher"] == methods.METHODS["fisher"]


@pytest.mark.parametrize("preset", PRESETS)
def test_rows_are_unique_and_cover_every_method(preset):
    found = rows(PRESETS[preset])
    assert len(set(found)) == len(found)
    assert {row.method for row in found} == set(PRESETS[preset].methods)
    assert found[-1].method == "speed"


def test_the_cpu_preset_meets_the_protocol():
    settings = PRESETS["cpu"]
    assert settings.methods == METHODS
    assert settings.seeds >= 3
    assert settings.pairs >= 20
    assert settings.chain_repeats == settings.checkpoint_repeats == 20
    assert (settings.ksd_n, settings.pair_n, settings.checkpoints) == (500, 20_000, 50)
    assert settings.speed_repeats >= 30
    assert settings.sobol_repeats >= 64
    found = rows(settings)
    for method in FAMILY:
        assert sum(row.method == method and row.target in SIX for row in found) == 3 * 6


@pytest.mark.parametrize(
    "change",
    [{"targets": ("nowhere",)}, {"methods": ("magic",)}, {"seeds": 0}, {"pairs": 1}, {"max_steps": 0}],
)
def test_senseless_settings_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        PRESETS["smoke"].replace(**change)
    with pytest.raises(TypeError):
        dataclasses.replace(PRESETS["smoke"], unknown=1)
