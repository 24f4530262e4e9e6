"""A checkpoint of another version, recipe or target is refused, and the message names what differs."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.recipe import methods
from pushforward.recipe.methods import for_target
from pushforward.recipe.table import Recipe
from pushforward.run.checkpoint import Checkpoint
from pushforward.run.identity import differences, identity_of
from pushforward.training import Position

pytestmark = pytest.mark.quick_compilation

KEY = jax.random.key(0)
TARGET = pf.targets.rosenbrock()
TINY = {"frame": "identity", "width": 4, "depth": 1, "score_width": 4, "score_depth": 1, "num_steps": 20,
        "batch_size": 16, "score_batch_size": 16, "score_steps": 1, "extra_latents": 0}  # fmt: skip
AT = Position({"a": jnp.arange(2.0)}, {"objective": jnp.zeros(())}, step=3)


def fit(folder, target=TARGET, key=KEY, **options):
    method = methods.KL(**TINY | options.pop("changes", {}))
    return pf.fit(
        key, target, method=method, checkpoint=folder, checkpoint_every=0.0, progress=False, **options
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    done = fit(folder, callback=lambda row: row["step"] == 3)
    assert done.outcome is pf.Outcome.STOPPED
    return folder


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"learning_rate": 0.5}, "recipe.training.learning_rate"),
        ({"annealing.num_sweeps": 7}, "recipe.annealing.num_sweeps"),
        ({"judge.log_z_apart": 0.25}, "recipe.judge.log_z_apart"),
        ({"beta2": 0.5}, "recipe.training.beta2"),
        # Its arrays are others too.
        ({"width": 8}, "recipe.training.width"),
    ],
)
def test_another_recipe_is_refused_by_the_name_of_the_number(folder, changes, name):
    with pytest.raises(ValueError, match=rf"another fit: `{name}` is .* there and .* here\. Choose another"):
        fit(folder, changes=changes)


def test_another_key_and_another_target_are_refused(folder):
    with pytest.raises(ValueError, match="`key` is "):
        fit(folder, key=jax.random.key(1))
    with pytest.raises(ValueError, match=r"`target\.name` is rosenbrock there and gaussian here"):
        fit(folder, target=pf.targets.gaussian())
    with pytest.raises(ValueError, match=r"`target\.dim` is 2 there and 5 here"):
        fit(folder, target=pf.targets.funnel_nd(5))
    assert not list(folder.glob("*.bad"))


def test_the_same_fit_goes_on(folder, tmp_path):
    done, whole = fit(folder), fit(tmp_path)
    assert done.outcome is pf.Outcome.FINISHED
    leaves = [jax.tree.leaves(each.sampler) for each in (done, whole)]
    assert all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


@pytest.fixture
def identity():
    return identity_of(KEY, TARGET, for_target(methods.KL(**TINY).recipe, TARGET))


def written_by(folder, identity):
    """Let a fit of that identity write where it stands, and leave."""
    checkpoint = Checkpoint(folder, identity, every=0.0)
    checkpoint.keep(AT, now=True)
    checkpoint.close()


def restored(folder, identity):
    checkpoint = Checkpoint(folder, identity)
    try:
        return checkpoint.restore(AT, 20)
    finally:
        checkpoint.close()


@pytest.mark.parametrize("name", ["pushforward", "jax", "jaxlib", "source"])
def test_another_version_is_refused_by_name(identity, tmp_path, name):
    other = copy.deepcopy(identity)
    assert identity["version"][name]
    other["version"][name] = "0.0.0"
    written_by(tmp_path, other)
    with pytest.raises(ValueError, match=rf"another fit: `version\.{name}` is 0\.0\.0 there"):
        restored(tmp_path, identity)


def test_what_an_earlier_version_wrote_is_refused_by_name(identity, tmp_path):
    """It knew settings, and neither a recipe nor a version."""
    old = {name: identity[name] for name in ("key", "target", "precision", "scores")}
    written_by(tmp_path, old | {"settings": identity["recipe"]["training"]})
    with pytest.raises(ValueError, match="`recipe` is missing there"):
        restored(tmp_path, identity)


def test_an_equal_identity_is_let_in(identity, tmp_path):
    written_by(tmp_path, copy.deepcopy(identity))
    at, _ = restored(tmp_path, identity)
    np.testing.assert_array_equal(at.state["a"], AT.state["a"])
    assert at.step == 3


def test_a_posterior_that_moved_by_a_hundredth_is_another_whatever_its_constant():
    """20,000 observations of deviation 10: the constant of the likelihood is thousands of nats."""

    def identity(mean):
        def log_density(x):
            return -0.5 * 20_000 * ((x[0] - mean) ** 2 / 100.0 + 1.0) - 0.5 * x[1] ** 2

        return identity_of(jax.random.key(0), pf.Target.from_log_density(log_density, dim=2), Recipe())

    deviation = 10.0 / 20_000**0.5
    here = identity(0.0)
    assert differences(here, identity(0.0)) == []
    assert differences(here, identity(0.02 * deviation)) == [
        "the log density has other slopes at trial points"
    ]
