"""A fit's own settings, recipe, file and recorded command give the very same sampler again."""

import json
import shlex

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick import quick
from typer.testing import CliRunner

import pushforward as pf
from pushforward.cli import app
from pushforward.recipe import methods
from pushforward.runs import load_run

pytestmark = pytest.mark.quick_compilation

KEY = jax.random.key(0)
DIM = 50
SMALL = {
    "annealing.num_particles": 64, "num_steps": 2, "width": 4, "search.num_walks": 16, 
    "search.rounds": 1, "search.round_steps": 20, "search.newton_steps": 3, 
    "path.enough": 2.0, "annealing.most_rounds": 1, "annealing.num_sweeps": 1, "annealing.most_temperatures": 3,
    "maps.good_nats": 0.0, "maps.good_least": -1.0, "judge.learnt": 2.0, "reweight.num_draws": 256,
    "reweight.marginal_steps": 2, "fallback.most_dim": 1,
}  # fmt: skip
"""Everything is looked at in fifty dimensions, where batches are smaller than in ten, and nothing for long."""


def log_density(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2)


TARGET = pf.Target.from_log_density(log_density, dim=DIM, name="normal")


def fit(**choices):
    return pf.fit(KEY, TARGET, progress=False, throw=False, **choices)


@pytest.fixture(scope="module")
def method():
    return quick(**SMALL | {"maps.good": 0.0, "maps.good_until": 1000})


@pytest.fixture(scope="module")
def done(method):
    return fit(method=method)


def same(one, other):
    leaves = [jax.tree.leaves(each) for each in (one, other)]
    return all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


def test_the_batch_is_what_fifty_dimensions_get(done):
    assert done.settings.batch_size == 512
    assert done.settings.network == "coupled"
    assert len(done.history) == 2


def test_a_fits_recipe_gives_the_same_sampler(done):
    again = fit(recipe=done.recipe)
    assert same(again.sampler, done.sampler)
    assert again.recipe == done.recipe
    assert again.recipe.digest() == done.recipe.digest() == done.sampler.about["digest"]


def test_a_fits_settings_give_the_same_sampler(done, method):
    again = fit(method=method, settings=done.settings)
    assert same(again.sampler, done.sampler)
    assert again.settings == done.settings


def test_another_number_gives_another_sampler(done):
    assert not same(fit(recipe=done.recipe.replace(learning_rate=1e-2)).sampler, done.sampler)


def test_a_samplers_file_tells_the_recipe(done, method, tmp_path):
    done.sampler.save(tmp_path / "sampler.pf")
    about = pf.load(tmp_path / "sampler.pf").about
    again = methods.make(about["method"], **about["changed"])
    assert again.recipe == done.recipe
    assert again.recipe.digest() == about["digest"]
    assert about["changed"]["annealing.num_particles"] == 64
    assert about["changed"]["batch_size"] == 512
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "sampler.pf")])
    assert shown.exit_code == 0, shown.output
    words = "".join(shown.stdout.split())
    assert about["digest"] in words
    assert "annealing.num_particles=64" in words


def test_what_was_annealed_alone_is_annealed_alone_again():
    changes = {name: value for name, value in SMALL.items() if name not in ("num_steps", "width")}
    method = quick("annealed", **changes | {"search.looks": 16})
    first = pf.fit(KEY, pf.targets.gaussian(), method=method, progress=False)
    assert first.sampler.about["method"] == "annealed"
    again = pf.fit(KEY, pf.targets.gaussian(), recipe=first.recipe, progress=False)
    assert [phase["phase"] for phase in again.phases] == [phase["phase"] for phase in first.phases]
    assert "train" not in {phase["phase"] for phase in again.phases}
    assert same(again.sampler, first.sampler)


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_recorded_command_gives_the_same_sampler(method, tmp_path):
    source = tmp_path / "target.py"
    source.write_text(
        "import jax.numpy as jnp\n\n\ndef normal(x):\n    return -0.5 * jnp.sum((x - 1.0) ** 2)\n"
    )
    sets = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    sets += ["--set", "maps.good=0.0", "--set", "maps.good_until=1000", "--set", "search.looks=4096"]
    out = tmp_path / "first"
    run("fit", f"{source}:normal", "--dim", DIM, *sets, "--out", out, "--quiet")
    about = load_run(out).about
    words = shlex.split(about["command"])
    assert words[:2] == ["pushforward", "fit"]
    assert f"batch_size={about['settings']['batch_size']}" in words
    run(*words[1:], "--out", tmp_path / "again", "--quiet")
    one, other = (pf.load(tmp_path / name / "sampler.pf") for name in ("first", "again"))
    assert same(one, other)
    assert one.about["digest"] == other.about["digest"]
    told = json.loads(run("show", out, "--json"))
    assert told["digest"] == one.about["digest"]
    assert told["changed"] == one.about["changed"]
    assert one.about["digest"] in "".join(run("show", out).split())
