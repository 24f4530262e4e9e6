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
    old = {name: identity[name] for name in ("key", "target", "precision", "slopes")}
    written_by(tmp_path, old | {"settings": identity["recipe"]["training"]})
    with pytest.raises(ValueError, match="`recipe` is missing there"):
        restored(tmp_path, identity)


def test_an_equal_identity_is_let_in(identity, tmp_path):
    written_by(tmp_path, copy.deepcopy(identity))
    at, _ = restored(tmp_path, identity)
    np.testing.assert_array_equal(at.state["a"], AT.state["a"])
    assert at.step == 3


def identity_with(log_density, dim=2):
    return identity_of(jax.random.key(0), pf.Target.from_log_density(log_density, dim=dim), Recipe())


def data_mean(mean, deviation, other):
    """20,000 observations, told by their mean, beside a coordinate that is `other` wide."""
    scale = deviation * 20_000**0.5

    def log_density(x):
        return -0.5 * 20_000 * (((x[0] - mean) / scale) ** 2 + 1.0) - 0.5 * ((x[1] - 2.0 * mean) / other) ** 2

    return log_density


@pytest.mark.parametrize("deviation", [1e-3, 0.07, 1e3])
@pytest.mark.parametrize("other", [1e-3, 1e3])
@pytest.mark.parametrize("place", [0.0, 15_000.0])
def test_a_posterior_that_moved_by_a_hundredth_is_another(deviation, other, place):
    """Whatever the constant of its likelihood, its scale, that of another coordinate, and where it lies."""
    mean = place * deviation
    here = identity_with(data_mean(mean, deviation, other))
    assert differences(here, identity_with(data_mean(mean, deviation, other))) == []
    found = differences(here, identity_with(data_mean(mean + 0.01 * deviation, deviation, other)))
    assert set(found) & {"the log density has other slopes at trial points", "walks uphill end elsewhere"}


def test_a_mode_far_away_that_moved_by_a_hundredth_is_seen():
    """At the origin nothing tells of it."""

    def log_density(moved):
        return lambda x: jnp.logaddexp(-0.5 * jnp.sum(x**2), -0.5 * jnp.sum((x - 500.0 - moved) ** 2))

    found = differences(identity_with(log_density(0.0)), identity_with(log_density(0.01)))
    assert found == ["walks uphill end elsewhere"]


def test_a_whole_file_with_other_arrays_is_another_fits(identity, tmp_path):
    """As of a network of the user's own that has changed: nothing else tells."""
    written_by(tmp_path, identity)
    other = Position({"a": jnp.arange(3.0)}, {"objective": jnp.zeros(())})
    checkpoint = Checkpoint(tmp_path, identity)
    with pytest.raises(ValueError, match="another fit: its arrays are of other shapes"):
        checkpoint.restore(other, 20)
    with pytest.raises(ValueError, match="another fit: it has other arrays"):
        checkpoint.restore(AT._replace(total={}), 20)
    checkpoint.close()
    assert not list(tmp_path.glob("*.bad"))


def test_a_lock_that_is_a_link_is_not_followed(identity, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("what nobody must touch")
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / ".lock").symlink_to(mine)
    with pytest.raises(ValueError, match=r"\.lock is a symbolic link"):
        Checkpoint(folder, identity)
    assert mine.read_text() == "what nobody must touch"
